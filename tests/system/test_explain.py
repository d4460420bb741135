# SPDX-License-Identifier: MIT
"""idemctl explain on both worlds: headers given by hand, where a key goes, and that nothing is cut."""
import json

from lib import Record
from shop import TABLES, Shop, payment, rules

BODY = {"order_no": "E1", "amount": "19.99", "channel_txn": "TE1", "status": "SUCCESS"}


def at(shop, offset, *args):
    return shop.world.idemctl(shop.config, "--json", "explain", "--topic", shop.topic, "--partition", "0",
                              "--offset", str(offset), *args)


def in_file(shop, body, *args, name="record.json"):
    path = shop.world.tmp / name
    path.write_text(body if isinstance(body, str) else json.dumps(body))
    return shop.world.idemctl(shop.config, "--json", "explain", "--topic", shop.topic, "--file", str(path), *args)


def two_key_headers():
    """Two rules, each with a key header of its own; `kind` in a header chooses."""
    topic = rules()
    paid, refunded = topic["rules"]
    paid["when"] = {"header Kind": "pay", "header Version": {"present": True}}
    refunded["when"] = {"/type": "REFUND"}
    refunded["key"] = ["header Refund-Key", "/refund_no"]
    return topic


def test_given_headers_join_those_of_the_record(world):
    shop = Shop(world, topic_rules=two_key_headers())
    shop.orders(["E1"])
    shop.send(Record(value=BODY, headers=[("Kind", "pay"), ("Version", "1"), ("Idempotency-Key", "from-kafka-1")]))
    assert at(shop, 0).json["key"] == "from-kafka-1"
    merged = at(shop, 0, "--header", "idempotency-KEY=by-hand-12", "--header", "Other=x=y")
    assert merged.code == 0, merged
    assert (merged.json["rule"], merged.json["key"], merged.json["outcome"]) == ("paid", "by-hand-12", "first")
    assert at(shop, 0, "--header", "kind=refuse").json["cause"] == "unmatched", "replaced, not added"
    twice = at(shop, 0, "--header", "Idempotency-Key=by-hand-12", "--header", "Idempotency-Key=by-hand-34").json
    assert (twice["outcome"], twice["cause"]) == ("invalid", "key_conflict")
    many = [word for i in range(100) for word in ("--header", f"H-{i}=v{i}")]
    assert at(shop, 0, *many, "--header", "Idempotency-Key=after-100-more").json["key"] == "after-100-more"
    for wrong in ("no-value", "=nameless"):
        assert at(shop, 0, "--header", wrong).code == 64


def test_key_goes_into_the_header_of_the_rule_that_takes_the_record(world):
    shop = Shop(world, topic_rules=two_key_headers())
    shop.orders(["E1"], status="PAID")
    shop.db.exec("INSERT INTO refunds VALUES ('R1', 'E1', 'APPLIED', 1)")
    refund = {"type": "REFUND", "refund_no": "R1", "order_no": "E1", "refund_fen": 100}
    told = in_file(shop, refund, "--key", "refund-key-1")
    assert told.code == 0, told
    assert (told.json["rule"], told.json["key"], told.json["outcome"]) == ("refunded", "refund-key-1", "first")
    shop.send(Record(value=BODY, headers=[("Kind", "pay"), ("Version", "1"), ("Idempotency-Key", "from-kafka-1")]))
    paid = at(shop, 0, "--key", "by-hand-12").json
    assert (paid["rule"], paid["key"], paid["cause"]) == ("paid", "by-hand-12", "identity_unknown")
    unmatched = in_file(shop, {"order_no": "E1"}, "--key", "some-key-1")
    assert unmatched.code == 0 and unmatched.json["cause"] == "unmatched" and "no rule" in unmatched.stderr
    assert unmatched.json["rule"] is None and unmatched.json["fingerprint_version"] is None


def test_a_rule_without_a_key_header_says_so(world):
    shop = Shop(world)
    told = in_file(shop, {"type": "REFUND", "refund_no": "R1", "order_no": "E1", "refund_fen": 100}, "--key", "some-key-1")
    assert told.code == 64 and told.stdout == "" and "refunded" in told.stderr


def test_nothing_is_cut(world):
    shop = Shop(world)
    shop.orders(["E1"])
    large = {**BODY, "pad": "x" * (17 << 20)}
    told = in_file(shop, large)
    assert (told.json["outcome"], told.json["cause"]) == ("invalid", "too_large"), "17 MiB, not the first 16 of it"
    shop.config["topics"][shop.topic]["max_bytes"] = "2MiB"
    told = in_file(shop, {**BODY, "pad": "x" * (1 << 20) + "x" * 1000})
    assert told.json["outcome"] == "first", told.json["cause"]
    told = world.idemctl(shop.config, "--json", "explain", "--topic", shop.topic, "--file", str(world.tmp))
    assert told.code == 64 and told.stdout == "" and "cannot read" in told.stderr, "a folder is no record"
    assert world.idemctl(shop.config, "explain", "--topic", shop.topic, "--file", str(world.tmp / "none")).code == 64


def test_more_statements_than_a_page(world):
    topic = rules()
    topic["rules"][0]["statements"] = [
        {"sql": f"UPDATE orders SET refunded = refunded + :amount WHERE order_no = :no AND {i} = {i}",
         "params": {"no": "/order_no", "amount": "amount"}, "affected": 1, "else": "state_conflict"} for i in range(32)]
    topic["rules"][0]["insert"] = [{"table": "notes", "columns": {f"c{i}": "/order_no"}} for i in range(32)]
    notes = "CREATE TABLE notes (" + ", ".join(f"c{i} VARCHAR(64) NULL" for i in range(32)) + ") ENGINE=InnoDB;\n"
    shop = Shop(world, topic_rules=topic, tables=TABLES + notes)
    shop.orders(["E1"])
    told = in_file(shop, BODY).json
    assert told["outcome"] == "first"
    texts = [s["text"] for s in told["sql"]]
    assert len(texts) > 64
    for i in range(32):
        assert any(f"{i} = {i}" in text for text in texts) and any(f"notes`(`c{i}`)" in text for text in texts), i
    assert all(s["params"] == [] for s in told["sql"]), "values stand in the text, as they are sent"
    assert any("'E1'" in text for text in texts)


def test_identity_that_is_not_there_is_null(world):
    shop = Shop(world)
    shop.orders(["E1"])
    missing = {key: value for key, value in BODY.items() if key != "channel_txn"}
    told = in_file(shop, missing).json
    assert (told["outcome"], told["cause"]) == ("invalid", "field_missing")
    assert told["identity"] == {"channel_txn": None} and told["identity_hash"] is None
    null = in_file(shop, {**BODY, "channel_txn": None}).json
    assert null["identity"] == {"channel_txn": None}


def test_what_is_asked_must_fit_together(world):
    shop = Shop(world)
    shop.send(payment("E1"))
    other = world.create_database()
    shop.config["databases"]["zz_other"] = other.config()
    assert at(shop, 0).code == 0
    explain = ["explain", "--topic", shop.topic]
    assert world.idemctl(shop.config, "--database", "zz_other", *explain, "--partition", "0", "--offset", "0").code == 64
    assert world.idemctl(shop.config, *explain, "--offset", "0").code == 64
    assert world.idemctl(shop.config, *explain, "--file", "x", "--offset", "0").code == 64
    assert world.idemctl(shop.config, "explain", "--topic", "nowhere", "--file", "x").code == 64
    assert at(shop, 99).code == 66
    text = world.idemctl(shop.config, *explain, "--partition", "0", "--offset", "0")
    assert "channel_txn=TE1" in text.stdout and "not_found" in text.stdout
