# SPDX-License-Identifier: MIT
"""idemctl check on both worlds: each code of the contract's closed list, and that nothing is changed by looking."""
import contextlib

import pytest

from shop import TABLES, Shop, payment, rules

OWN = {"idem_record": "SELECT INSERT UPDATE DELETE", "idem_dead_letter": "SELECT INSERT UPDATE DELETE",
       "idem_parked": "SELECT INSERT UPDATE DELETE", "idem_outbox": "SELECT INSERT DELETE",
       "idem_partition": "SELECT INSERT UPDATE", "idem_progress": "SELECT INSERT UPDATE", "idem_lease": "SELECT INSERT UPDATE",
       "idem_schema": "SELECT", "idem_rule": "SELECT INSERT"}
SHOP = {"orders": "SELECT UPDATE(status,paid_at,channel_txn,refunded)", "refunds": "SELECT UPDATE(status)",
        "payment_ledger": "SELECT INSERT"}


def check(shop, *args):
    told = shop.world.idemctl(shop.config, "--json", *args, "check")
    assert told.code in (0, 1), told
    found = told.json["findings"]
    serious = [f for f in found if f["severity"] != "info"]
    assert told.code == (1 if serious else 0), found
    return found


def serious(found):
    return sorted({(f["severity"], f["code"]) for f in found if f["severity"] != "info"})


def grant_least(shop, without=()):
    """The user of the shop with the rights of details 4 and no more; without: (table, verb)."""
    db = shop.db
    db.exec(f"REVOKE ALL PRIVILEGES ON {db.name}.* FROM {db.user}@'%'")
    for table, verbs in {**OWN, **SHOP}.items():
        kept = [verb for verb in verbs.split() if (table, verb.split("(")[0]) not in without]
        if kept:
            db.exec(f"GRANT {', '.join(kept)} ON {db.name}.{table} TO {db.user}@'%'")


@contextlib.contextmanager
def setting(server, name, value):
    before = server.get_global(name)
    before = int(before) if before.isdigit() else before
    server.set_global(name, value)
    try:
        yield
    finally:
        server.set_global(name, before)


def test_a_good_shop_has_nothing_to_report_and_is_left_alone(world):
    shop = Shop(world)
    shop.orders(["C1"])
    before = {t: shop.db.value(f"SELECT COUNT(*) FROM {t}") for t in [*OWN, *SHOP]}
    assert serious(check(shop)) == []
    assert {t: shop.db.value(f"SELECT COUNT(*) FROM {t}") for t in before} == before
    assert shop.db.one("SELECT status, refunded FROM orders") == {"status": "PENDING", "refunded": 0}


def test_the_grants_of_the_contract_suffice(world):
    shop = Shop(world)
    grant_least(shop)
    found = check(shop)
    assert serious(found) == [], found
    assert any(f["code"] == "grants" and "not looked at" in f["message"] for f in found), "triggers are invisible"
    daemon = shop.daemon()
    shop.orders(["G1"])
    shop.send(payment("G1"), payment("G1"), payment("G1", txn="OTHER", key="other-key-1"), payment("NONE"))
    daemon.wait_outcomes(4)
    assert shop.counts() == (1, 1, 1, 1)
    assert sorted(row["outcome"] for row in shop.letters()) == ["applied_by_other", "not_found"]


@pytest.mark.parametrize("table,verb", [(t, v.split("(")[0]) for t, vs in {**OWN, **SHOP}.items() for v in vs.split()])
def test_each_missing_grant_is_named(world, table, verb):
    shop = Shop(world)
    grant_least(shop, without=[(table, verb)])
    found = [f for f in check(shop) if f["code"] == "grants" and f["severity"] == "error"]
    assert any(f["path"].endswith(f"{table}.{verb}") for f in found), found
    others = [f["path"] for f in found if table not in f["path"] and "statements" not in f["path"]]
    assert others == [], "only what is missing is named"


def test_a_statement_needs_its_verb_table_and_columns(world):
    topic = rules()
    topic["rules"][0]["statements"] = [
        {"sql": "DELETE FROM payment_ledger WHERE order_no = :no", "params": {"no": "/order_no"}, "affected": 0, "else": "rejected"},
        {"sql": "UPDATE orders SET nothing = 1 WHERE order_no = :no", "params": {"no": "/order_no"}, "affected": 1,
         "else": "rejected"},
        {"sql": "UPDATE zz_nowhere SET a = 1 WHERE order_no = :no", "params": {"no": "/order_no"}, "affected": 1, "else": "rejected"},
        {"sql": "UPDATE orders SET refunded = WHERE order_no = :no", "params": {"no": "/order_no"}, "affected": 1,
         "else": "rejected"}]
    shop = Shop(world, topic_rules=topic)
    found = [f for f in check(shop) if f["severity"] == "error"]
    assert [(f["code"], "statement " in f["message"]) for f in found] == \
        [("column_type", True), ("column_type", True), ("plan", True)], found
    grant_least(shop)
    found = [f for f in check(shop) if f["code"] == "grants" and f["severity"] == "error"]
    assert any(f["path"].endswith("statements.0.DELETE") for f in found), found


def test_the_plan_is_that_of_the_update(world):
    shop = Shop(world)
    shop.orders([f"P{i}" for i in range(200)])
    assert serious(check(shop)) == []
    shop.db.exec("ALTER TABLE orders MODIFY order_no VARCHAR(64) CHARACTER SET latin1 COLLATE latin1_swedish_ci NOT NULL")
    assert serious(check(shop)) == [], "typed by the column: still by its index"
    shop.db.exec("ALTER TABLE orders DROP INDEX uk_no, ADD INDEX k_no (order_no)")
    assert ("error", "no_unique_index") in serious(check(shop))
    shop.db.exec("ALTER TABLE payment_ledger DROP INDEX uk_txn")
    found = [f for f in check(shop) if f["code"] == "no_unique_index"]
    assert any("payment_ledger" in f["message"] for f in found), found


def test_tables_without_transactions_are_an_isolation_finding(world):
    shop = Shop(world)
    shop.db.exec("ALTER TABLE payment_ledger ENGINE=MyISAM")
    found = [f for f in check(shop) if f["code"] == "isolation"]
    assert [f["severity"] for f in found] == ["error"] and "MyISAM" in found[0]["message"]


def test_server_settings(world):
    shop = Shop(world)
    server = shop.db.server
    isolation = "tx_isolation" if server.flavor == "mariadb" else "transaction_isolation"
    for name, value, code in [("innodb_flush_log_at_trx_commit", 2, "durability"), ("sync_binlog", 0, "durability"),
                              ("sql_mode", "", "sql_mode"), (isolation, "SERIALIZABLE", "isolation")]:
        with setting(server, name, value):
            assert serious(check(shop)) == [("warning", code)], name
    assert serious(check(shop)) == []


def test_a_replica_is_a_finding(world):
    shop = Shop(world)
    with setting(shop.db.server, "read_only", 1):
        found = check(shop)
    assert serious(found) == [("error", "durability")], found
    assert any("read-only" in f["message"] for f in found)


def test_a_zone_that_the_server_does_not_know(world):
    shop = Shop(world)
    shop.orders(["Z1"], status="STRANGE")
    shop.config["databases"]["shop"]["time_zone"] = "Mars/Olympus"
    found = check(shop)
    assert ("error", "time_zone") in serious(found) and ("warning", "unknown_state") in serious(found), "the rest is looked at"
    assert any("Mars/Olympus" in f["message"] and f["path"] == "databases.shop.time_zone" for f in found)


def test_identity_that_can_never_be_null(world):
    shop = Shop(world, tables=TABLES.replace("channel_txn VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL",
                                             "channel_txn VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''"))
    assert serious(check(shop)) == [("warning", "identity")]


def test_ttl_against_what_kafka_keeps(world):
    shop = Shop(world)
    kept = world.kafka.create_topic(retention_ms=86400000 * 2)
    forever = world.kafka.create_topic(retention_ms=-1)
    bare = rules()
    bare["rules"] = bare["rules"][:1]
    del bare["rules"][0]["transition"], bare["rules"][0]["insert"]
    bare["rules"][0]["identity"] = "none"
    bare["rules"][0]["statements"] = [{"sql": "UPDATE orders SET refunded = refunded + :a WHERE order_no = :no",
                                       "params": {"a": "amount", "no": "/order_no"}, "affected": 1, "else": "rejected"}]
    shop.config["topics"] = {name: {"database": "shop", **topic} for name, topic in
                             [(kept, rules(park={"for": "10m"})), (forever, rules()), (shop.topic, bare)]}
    shop.config["topics"][kept]["rules"][0]["ttl"] = "1d"
    found = [f for f in check(shop) if f["code"] == "ttl"]
    sums = {f["path"]: f for f in found if "retention" in f["message"] or "for ever" in f["message"]}
    short = sums[f"topics.{kept}.rules.paid"]
    assert short["severity"] == "info" and "ttl 1d < retention.ms 2d + longest park 10m = 2d10m" in short["message"]
    assert f"topics.{kept}.rules.refunded" not in sums, "30d is enough"
    assert "for ever" in sums[f"topics.{forever}.rules.paid"]["message"]
    unguarded = [f for f in found if f["path"] == f"topics.{shop.topic}.rules.paid"]
    assert {f["severity"] for f in unguarded} == {"warning"} and any("ttl: forever" in f["message"] for f in unguarded)
    for topic in shop.config["topics"].values():
        for rule in topic["rules"]:
            rule["ttl"] = "forever"
    assert [f for f in check(shop) if f["code"] == "ttl"] == []
    shop.config["kafka"]["brokers"] = "127.0.0.1:1"
    assert [f["severity"] for f in check(shop) if f["code"] == "ttl"] == ["info"], "a broker that is away is no fault of the rules"


def test_rules_that_would_wait_for_each_other(world):
    topic = rules(park={"for": "10m"})
    ship = {**topic["rules"][0], "name": "shipped", "when": {"/status": ["SHIPPED"]}, "action": "ship", "insert": [], "on": {},
            "transition": {**topic["rules"][0]["transition"], "from": ["PAID"], "to": "SHIPPED", "early": ["PENDING"],
                           "already": [], "conflict": ["CLOSED"]}}
    topic["rules"].append(ship)
    shop = Shop(world, topic_rules=topic)
    found = [f for f in check(shop) if f["severity"] == "warning"]
    assert [f["code"] for f in found] == ["unknown_state"] and "biz_type" in found[0]["message"], found


def test_triggers_are_told_where_they_may_be_seen(world):
    shop = Shop(world)
    assert not any("trigger" in f["message"] for f in check(shop)), "looked at: there are none"
    shop.db.exec("CREATE TRIGGER watch BEFORE UPDATE ON orders FOR EACH ROW SET NEW.refunded = NEW.refunded")
    found = [f for f in check(shop) if "trigger watch" in f["message"]]
    assert [f["severity"] for f in found] == ["info"] and "BEFORE UPDATE" in found[0]["message"]


def test_every_database_is_checked_unless_one_is_chosen(world):
    shop = Shop(world)
    other = world.create_database()
    other.script(TABLES)
    topic = world.kafka.create_topic()
    shop.config["databases"]["zz_other"] = other.config()
    shop.config["topics"][topic] = {"database": "zz_other", **rules()}
    world.migrate(shop.config)
    assert serious(check(shop)) == []
    other.exec("INSERT INTO orders (order_no, status, amount) VALUES ('O1', 'STRANGE', 1)")
    found = [f for f in check(shop) if f["severity"] != "info"]
    assert [(f["code"], f["path"]) for f in found] == [("unknown_state", f"topics.{topic}.rules.paid"),
                                                       ("unknown_state", f"topics.{topic}.rules.refunded")]
    assert serious(check(shop, "--database", "shop")) == []
    assert serious(check(shop, "--database", "zz_other")) == [("warning", "unknown_state")]
