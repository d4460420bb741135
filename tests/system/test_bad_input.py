# SPDX-License-Identifier: MIT
"""Bad input: an outcome each, never a crash, and good neighbours are applied. Runs again on a sanitized daemon."""
import pytest

from lib import Record
from shop import Shop, payment

GOOD = '{"order_no":"%s","amount":"19.99","channel_txn":"T%s","status":"SUCCESS"}'


def body(text):
    return Record(key="k", value=text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"), partition=0)


def headed(*headers, no="OK"):
    return Record(key="k", value=GOOD % (no, no), headers=list(headers), partition=0)


KEY = "Idempotency-Key"
CASES = [
    ("no key", body('{"status":"SUCCESS","amount":"1"}'), "invalid", "key_missing"),
    ("two different keys", headed((KEY, "key-number-1"), (KEY, "key-number-2")), "invalid", "key_conflict"),
    ("two equal keys", headed((KEY, "key-number-9"), ("idempotency-key", "key-number-9"), no="E1"), "first", None),
    ("empty key", headed((KEY, "")), "invalid", "key_malformed"),
    ("short key", headed((KEY, "short-7")), "invalid", "key_malformed"),
    ("key of 255 bytes", headed((KEY, "k" * 255), no="E2"), "first", None),
    ("key of 256 bytes", headed((KEY, "k" * 256)), "invalid", "key_malformed"),
    ("key with NUL", headed((KEY, b"key-with\0nul-in-it")), "invalid", "key_malformed"),
    ("key with blank", headed((KEY, "key with blank")), "invalid", "key_malformed"),
    ("key in UTF-8", headed((KEY, "schlüssel-lang")), "invalid", "key_malformed"),
    ("null header value", headed((KEY, None), no="E3"), "first", None),
    ("broken UTF-8", body(b'{"order_no":"\xff\xfe","status":"SUCCESS"}'), "invalid", "utf8"),
    ("overlong UTF-8", body(b'{"order_no":"\xc0\xaf","status":"SUCCESS"}'), "invalid", "utf8"),
    ("lone surrogate", body('{"order_no":"\\ud800","amount":"1","channel_txn":"T","status":"SUCCESS"}'), "invalid", "utf8"),
    ("duplicate names", body('{"order_no":"OK","order_no":"OK2","status":"SUCCESS"}'), "invalid", "duplicate_name"),
    ("duplicate names by escape", body('{"a":1,"\\u0061":2,"status":"SUCCESS"}'), "invalid", "duplicate_name"),
    ("duplicate names far below", body('{"x":{"y":[{"z":1,"z":1}]},"status":"SUCCESS"}'), "invalid", "duplicate_name"),
    ("too large", body(b'{"x":"' + b"a" * (5 << 20) + b'"}'), "invalid", "too_large"),
    ("tombstone", Record(key="k", value=None, partition=0), "ignored", "tombstone"),
    ("empty value", Record(key="k", value=b"", partition=0), "invalid", "body"),
    ("not an object", body("[1,2,3]"), "invalid", "body"),
    ("not JSON", body("<xml/>"), "invalid", "body"),
    ("trailing text", body('{"status":"SUCCESS"} x'), "invalid", "body"),
    ("trailing comma", body('{"status":"SUCCESS",}'), "invalid", "body"),
    ("NaN", body('{"order_no":NaN}'), "invalid", "body"),
    ("1e400", body('{"order_no":"OK","amount":1e400,"channel_txn":"T","status":"SUCCESS"}'), "invalid", "too_long"),
    ("66 digits", body('{"order_no":"OK","amount":%s,"channel_txn":"T","status":"SUCCESS"}' % ("9" * 66)), "invalid", "too_long"),
    ("19 digits as a number", body('{"order_no":1000000000000000005,"amount":"19.99","channel_txn":"TN","status":"SUCCESS"}'),
     "first", None),
    ("a fraction as a number", body('{"order_no":1.5,"amount":"19.99","channel_txn":"T","status":"SUCCESS"}'), "invalid", "field_type"),
    ("an object as a number", body('{"order_no":{"a":1},"amount":"19.99","channel_txn":"T","status":"SUCCESS"}'), "invalid", "field_type"),
    ("true as a number", body('{"order_no":true,"amount":"19.99","channel_txn":"T","status":"SUCCESS"}'), "invalid", "field_type"),
    ("nesting 64", body('{"order_no":"E4","amount":"19.99","channel_txn":"TE4","status":"SUCCESS","x":' + "[" * 63 + "]" * 63 + "}"),
     "first", None),
    ("nesting 1 000", body('{"x":' + "[" * 1000 + "]" * 1000 + "}"), "invalid", "too_deep"),
    ("nesting 100 000, never closed", body('{"x":' + "[" * 100000), "invalid", None),
    ("number of 65 bytes", body(GOOD % ("n" * 65, "T")), "invalid", "too_long"),
    ("empty number", body(GOOD % ("", "T")), "invalid", None),
    ("null number", body('{"order_no":null,"amount":"19.99","channel_txn":"T","status":"SUCCESS"}'), "invalid", "key_missing"),
    ("no amount", body('{"order_no":"OK","channel_txn":"T","status":"SUCCESS"}'), "invalid", "field_missing"),
    ("amount in words", body('{"order_no":"OK","amount":"ten","channel_txn":"T","status":"SUCCESS"}'), "invalid", "field_type"),
    ("no transaction", body('{"order_no":"OK","amount":"19.99","status":"SUCCESS"}'), "invalid", "field_missing"),
    ("quotes and backslashes", body('{"order_no":"OK","amount":"19.99","channel_txn":"a\'b\\\\\\"c","status":"SUCCESS"}'), "first", None),
    ("SQL in a number", body(GOOD % ("x' OR '1'='1", "T")), "not_found", "row_missing"),
]


@pytest.mark.sanitize
def test_every_bad_record_has_its_outcome_and_good_ones_are_applied(world):
    shop = Shop(world)
    shop.kafka.delete_topic(shop.topic)
    shop.topic = world.kafka.create_topic(partitions=1, max_message_bytes=8 << 20)
    from shop import rules
    shop.config = world.config(shop.db, {shop.topic: rules()})
    shop.group = shop.config["kafka"]["group"]
    shop.orders(["OK", "E1", "E2", "E3", "E4", "1000000000000000005", "LAST"])
    sent = [record for _, record, _, _ in CASES]
    for i in range(0, len(sent), 5):
        shop.kafka.produce(shop.topic, sent[i:i + 5], **{"message.max.bytes": 8 << 20})
    shop.send(payment("LAST", partition=0))
    daemon = shop.daemon()
    lines = sorted(daemon.wait_outcomes(len(CASES) + 1, timeout=120), key=lambda o: int(o["offset"]))
    got = [(name, o["outcome"], o.get("cause") if cause or outcome in ("first",) else None)
           for (name, _, outcome, cause), o in zip(CASES, lines)]
    assert got == [(name, outcome, cause) for name, _, outcome, cause in CASES]
    assert lines[-1]["outcome"] == "first" and lines[-1]["biz_no"] == "LAST"
    shop.finished()
    assert daemon.stop() == 0
    assert len(lines) == len(CASES) + 1
    letters = shop.letters()
    assert len(letters) == sum(o["outcome"] not in ("first", "ignored", "duplicate") for o in lines)
    large = next(r for r in letters if r["cause"] == "too_large")
    assert large["payload_bytes"] == (5 << 20) + 8 and len(large["payload"]) == 1 << 20


@pytest.mark.sanitize
def test_headers_of_a_dead_letter_keep_every_form(world):
    shop = Shop(world)
    daemon = shop.daemon()
    shop.send(Record(key="k", value="no json", headers=[("a", "1"), ("a", None), ("B", b"\0\xff"), ("", "")]))
    daemon.wait_outcomes(1)
    stored = shop.letters()[0]["headers"]
    expected = (b"\0\0\0\4" b"\0\0\0\1a\0\0\0\1" b"1" b"\0\0\0\1a\xff\xff\xff\xff"
                b"\0\0\0\1B\0\0\0\2\0\xff" b"\0\0\0\0\0\0\0\0")
    assert stored == expected
