# SPDX-License-Identifier: MIT
"""idemctl on both worlds: what an operator asks at three in the morning."""
import json

from shop import Shop, payment


def test_migrate_twice_is_harmless_and_a_changed_migration_is_refused(world):
    shop = Shop(world)
    again = world.idemctl(shop.config, "migrate")
    assert again.code == 0 and "done before" in again.stdout
    shop.db.exec("UPDATE idem_schema SET checksum = REPEAT('x', 32)")
    assert world.idemctl(shop.config, "migrate").code == 78
    daemon = shop.daemon()
    assert daemon.wait_exit() == 78


def test_a_migration_that_was_cut_off_is_finished(world):
    shop = Shop(world)
    shop.db.exec("UPDATE idem_schema SET state = 0")
    shop.db.exec("DROP TABLE idem_lease")
    daemon = shop.daemon()
    assert daemon.wait_exit() == 78, "a half-made schema is not started on"
    done = world.idemctl(shop.config, "migrate")
    assert done.code == 0, done
    assert shop.db.value("SELECT COUNT(*) FROM idem_lease") == 0
    assert world.idemctl(shop.config, "--json", "check").code in (0, 1)


def test_key_tells_of_one_key_and_of_one_order(world):
    shop = Shop(world)
    shop.orders(["A1"])
    daemon = shop.daemon()
    shop.send(payment("A1"), payment("A1", txn="OTHER", key="other-key-1"))
    daemon.wait_outcomes(2)
    told = world.idemctl(shop.config, "--json", "key", "payment", "payment:A1:pay")
    assert told.code == 0
    row = told.json
    assert (row["status"], row["outcome"], row["attempts"], row["offset"]) == ("applied", "first", 1, 0)
    assert row["response"] == {"code": "SUCCESS", "order_no": "A1"} and row["topic"] == shop.topic
    assert row["created_at"].endswith("Z") and "T" in row["created_at"]
    story = world.idemctl(shop.config, "--json", "key", "--biz-no", "payment", "A1").json
    assert {len(story["records"]), len(story["dead_letters"]), len(story["outbox"])} == {2, 1}
    assert "payload" not in story["dead_letters"][0]
    shown = world.idemctl(shop.config, "--json", "key", "--biz-no", "payment", "A1", "--payload").json
    assert json.loads(shown["dead_letters"][0]["payload"])["channel_txn"] == "OTHER"
    assert world.idemctl(shop.config, "key", "payment", "nothing-like-it").code == 66
    assert "A1" in world.idemctl(shop.config, "key", "--biz-no", "payment", "A1").stdout


def test_dead_letters_are_listed_and_shown(world):
    shop = Shop(world)
    shop.orders(["B1"], status="CLOSED")
    daemon = shop.daemon()
    shop.send(payment("B1"), payment("NOBODY"))
    daemon.wait_outcomes(2)
    letters = world.idemctl(shop.config, "--json", "dead-letter", "list").json["dead_letters"]
    assert {(r["outcome"], r["cause"]) for r in letters} == {("state_conflict", "state"), ("not_found", "row_missing")}
    only = world.idemctl(shop.config, "--json", "dead-letter", "list", "--outcome", "state_conflict").json["dead_letters"]
    assert [r["biz_no"] for r in only] == ["B1"] and only[0]["attempts"] == 1 and only[0]["state"] == "open"
    shown = world.idemctl(shop.config, "--json", "dead-letter", "show", str(only[0]["id"])).json
    assert shown["row_state"]["status"] == "CLOSED" and "payload" not in shown
    shown = world.idemctl(shop.config, "--json", "dead-letter", "show", str(only[0]["id"]), "--payload").json
    assert json.loads(shown["payload"])["order_no"] == "B1"
    assert world.idemctl(shop.config, "dead-letter", "show", "999999").code == 66
    assert world.idemctl(shop.config, "dead-letter", "list").stdout.count("\n") == 3


def test_explain_says_what_would_happen_and_changes_nothing(world):
    shop = Shop(world)
    shop.orders(["E1"])
    shop.send(payment("E1"), payment("E1", amount="1.00"), payment("NOBODY"))
    dump = "SELECT (SELECT COUNT(*) FROM idem_record), (SELECT COUNT(*) FROM idem_rule), (SELECT COUNT(*) FROM idem_outbox)," \
           " (SELECT status FROM orders)"
    before = shop.db.one(dump)
    told = world.idemctl(shop.config, "--json", "explain", "--topic", shop.topic, "--partition", "0", "--offset", "0")
    assert told.code == 0, told
    row = told.json
    assert (row["rule"], row["key"], row["outcome"], row["cause"]) == ("paid", "payment:E1:pay", "first", None)
    assert row["identity"] == {"channel_txn": "TE1"} and row["fingerprint_version"] == 1
    assert row["row_state"]["status"] == "PENDING"
    assert any("UPDATE" in s["text"] and "orders" in s["text"] for s in row["sql"])
    wrong = world.idemctl(shop.config, "--json", "explain", "--topic", shop.topic, "--partition", "0", "--offset", "1").json
    assert (wrong["outcome"], wrong["cause"]) == ("state_conflict", "amount_mismatch")
    missing = world.idemctl(shop.config, "--json", "explain", "--topic", shop.topic, "--partition", "0", "--offset", "2").json
    assert missing["outcome"] == "not_found" and missing["row_state"] is None
    file = world.tmp / "record.json"
    file.write_text('{"order_no":"E1","amount":"19.99","channel_txn":"TE1","status":"SUCCESS"}')
    keyed = world.idemctl(shop.config, "--json", "explain", "--topic", shop.topic, "--file", str(file), "--key", "given-key-1").json
    assert keyed["key"] == "given-key-1" and keyed["outcome"] == "first"
    held = shop.db.connect()
    with held.cursor() as cursor:
        cursor.execute("SELECT * FROM orders FOR UPDATE")
    locked = world.idemctl(shop.config, "--json", "explain", "--topic", shop.topic, "--file", str(file)).json
    assert (locked["outcome"], locked["cause"]) == ("parked", "locked")
    held.rollback()
    assert shop.db.one(dump) == before


def test_check_lists_what_is_wrong(world):
    shop = Shop(world)
    shop.orders(["C1"], status="STRANGE")
    found = world.idemctl(shop.config, "--json", "check")
    assert found.code == 1
    assert {f["code"] for f in found.json["findings"] if f["severity"] != "info"} == {"unknown_state"}
    shop.db.exec("UPDATE orders SET status = 'PENDING'")
    assert world.idemctl(shop.config, "check").code == 0
    shop.db.exec("ALTER TABLE orders MODIFY amount DOUBLE NOT NULL")
    assert "column_type" in [f["code"] for f in world.idemctl(shop.config, "--json", "check").json["findings"]]
    assert world.idemctl(shop.config, "check", "--offline").code == 0


def test_exit_codes_of_mistakes(world):
    shop = Shop(world)
    assert world.idemctl(shop.config, "nonsense").code == 64
    assert world.idemctl(shop.config, "purge").code == 64, "not supported yet is said, not pretended"
    assert world.idemctl(shop.config, "key", "one").code == 64
    shop.config["databases"]["shop"]["password_file"] = str(world.tmp / "wrong")
    (world.tmp / "wrong").write_text("wrong\n")
    assert world.idemctl(shop.config, "check").code == 78
    shop.config["databases"]["shop"]["port"] = 1
    assert world.idemctl(shop.config, "check").code == 69
    checked = world.idemd_check(shop.config)
    assert checked.code == 0
    shop.config["topics"][shop.topic]["rules"][0]["ttl"] = "soon"
    checked = world.idemd_check(shop.config)
    assert checked.code == 78 and "ttl" in checked.stderr


def test_help_names_every_option(world):
    run = world.binaries.run
    assert run("idemctl", "--version").stdout.startswith("idemctl ")
    assert "not supported yet" in run("idemctl", "--help").stdout
    for command, options in {
            "check": "--offline", "migrate": "--dry-run --to", "explain": "--topic --file --partition --offset --key --header",
            "key": "--biz-no --payload", "dead-letter": "--outcome --cause --rule --biz-type --biz-no --topic --state --since --until"
            " --limit --payload"}.items():
        told = run("idemctl", "-c", "/nowhere", command, "--help")
        assert told.code == 0 and all(option in told.stdout for option in options.split()), told
    for wrong in ([], ["-c"], ["-c", "/nowhere"], ["--colour", "check"], ["check"]):
        assert run("idemctl", *wrong).code == 64, wrong
