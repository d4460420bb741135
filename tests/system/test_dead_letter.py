# SPDX-License-Identifier: MIT
"""idemctl dead-letter on both worlds: every filter, what is refused, and several databases in one file."""
import datetime
import hashlib

import pytest

from shop import Shop

NOW = "UTC_TIMESTAMP(6)"


def letter(db, no, outcome="state_conflict", cause="state", rule="paid", biz_type="payment", topic="t", state="open",
           created=NOW):
    origin = hashlib.sha256(f"{db.name} {no} {outcome} {topic}".encode()).hexdigest()
    db.exec("INSERT INTO idem_dead_letter (origin_hash, source, topic, rule, biz_type, idem_key, biz_no, outcome, cause, state,"
            f" row_state, payload_sha256, payload, created_at) VALUES (UNHEX(%s), 'kafka', %s, %s, %s, %s, %s, %s, %s, %s,"
            f" %s, REPEAT('x', 32), 'p', {created})",
            [origin, topic, rule, biz_type, f"{biz_type}:{no}:pay", no, outcome, cause, state, '{"status":"CLOSED"}'])
    return db.value("SELECT MAX(id) FROM idem_dead_letter")


def numbers(result):
    assert result.code == 0, result
    return [row["biz_no"] for row in result.json["dead_letters"]]


def test_each_filter_narrows_the_list(world):
    shop = Shop(world)
    letter(shop.db, "N1", outcome="not_found", cause="row_missing")
    letter(shop.db, "N2", rule="refunded", biz_type="refund")
    letter(shop.db, "N3", topic="elsewhere", state="discarded")
    letter(shop.db, "N4", created="'2026-01-01 00:00:00.500000'")

    def listed(*args):
        return numbers(world.idemctl(shop.config, "--json", "dead-letter", "list", *args))
    assert listed() == ["N1", "N2", "N3", "N4"]
    assert listed("--outcome", "not_found") == ["N1"]
    assert listed("--cause", "row_missing") == ["N1"]
    assert listed("--rule", "refunded") == ["N2"]
    assert listed("--biz-type", "refund") == ["N2"]
    assert listed("--topic", "elsewhere") == ["N3"]
    assert listed("--state", "discarded") == ["N3"]
    assert listed("--biz-no", "N4") == ["N4"]
    assert listed("--limit", "2") == ["N1", "N2"]
    assert listed("--outcome", "state_conflict", "--state", "open", "--rule", "paid") == ["N4"]
    assert listed("--biz-no", "x' OR '1'='1") == []
    text = world.idemctl(shop.config, "dead-letter", "list", "--state", "resolved")
    assert text.code == 0 and text.stdout == "no dead letters\n"


def test_since_and_until_take_every_form_of_a_moment(world):
    shop = Shop(world)
    letter(shop.db, "OLD", created="'2026-01-01 00:00:00.500000'")
    letter(shop.db, "NEW")

    def listed(*args):
        return numbers(world.idemctl(shop.config, "--json", "dead-letter", "list", *args))
    printed = world.idemctl(shop.config, "--json", "dead-letter", "list", "--biz-no", "OLD").json["dead_letters"][0]
    assert printed["created_at"] == "2026-01-01T00:00:00.500000Z"
    assert listed("--since", printed["created_at"]) == ["OLD", "NEW"], "what it prints, it takes"
    assert listed("--until", printed["created_at"]) == [], "until is before"
    for moment in ("2026-01-01T00:00:00.000Z", "2026-01-01 00:00:00", "2026-01-01T08:00:00+08:00", "2025-12-31T19:00:00-05:00"):
        assert listed("--since", moment) == ["OLD", "NEW"], moment
        assert listed("--until", moment) == [], moment
    for moment in ("2026-01-01T00:00:01Z", "2026-01-01 08:00:01+08:00"):
        assert listed("--since", moment) == ["NEW"], moment
        assert listed("--until", moment) == ["OLD"], moment
    assert listed("--since", "2h") == ["NEW"] and listed("--until", "2h") == ["OLD"]
    tomorrow = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    assert listed("--since", tomorrow.isoformat()) == []


@pytest.mark.parametrize("args", [
    ("--since", "yesterday"), ("--until", "2026-02-30T00:00:00Z"), ("--since", "1=1"), ("--since",), ("--limit", "0"),
    ("--limit", "many"), ("--outcome", "statte_conflict"), ("--state", "closed"), ("--colour", "red"), ("surplus",)])
def test_what_is_no_value_is_usage_and_nothing_is_printed(world, args):
    shop = Shop(world)
    told = world.idemctl(shop.config, "--json", "dead-letter", "list", *args)
    assert told.code == 64 and told.stdout == "" and told.stderr, told


def test_a_failure_on_the_way_prints_no_half_document(world):
    shop = Shop(world)
    letter(shop.db, "N1")
    other = world.create_database()
    shop.config["databases"]["zz_other"] = other.config()
    told = world.idemctl(shop.config, "--json", "dead-letter", "list")
    assert told.code == 78 and told.stdout == "", "the second database has no tables"
    assert "zz_other" in told.stderr or "idem_dead_letter" in told.stderr
    shop.db.exec("DROP TABLE idem_outbox")
    told = world.idemctl(shop.config, "--json", "--database", "shop", "key", "--biz-no", "payment", "N1")
    assert told.code == 78 and told.stdout == "", "the fourth part of the story failed"


def test_a_row_state_that_is_no_json_leaves_the_document_whole(world):
    shop = Shop(world)
    found = letter(shop.db, "N1")
    show = ["--json", "dead-letter", "show", str(found)]
    assert world.idemctl(shop.config, *show).json["row_state"] == {"status": "CLOSED"}
    for broken in ('{"status":', '{"a":1} ,"x":2', "[", "text"):
        shop.db.exec("UPDATE idem_dead_letter SET row_state = %s", [broken])
        assert world.idemctl(shop.config, *show).json["row_state"] == broken


def two_shops(world):
    shop = Shop(world)
    other = world.create_database()
    shop.config["databases"]["zz_other"] = other.config()
    return shop, other


def test_migrate_makes_the_tables_of_every_database(world):
    shop, other = two_shops(world)
    dry = world.idemctl(shop.config, "--json", "migrate", "--dry-run")
    assert dry.code == 0
    assert [(m["database"], m["version"], m["state"]) for m in dry.json["migrations"]] == \
        [("shop", 1, "done"), ("zz_other", 1, "pending")]
    assert other.query("SHOW TABLES") == [], "a dry run changes nothing"
    text = world.idemctl(shop.config, "migrate", "--to", "1")
    assert text.code == 0 and "done before" in text.stdout and "applied" in text.stdout and "zz_other" in text.stdout
    assert other.value("SELECT COUNT(*) FROM idem_record") == 0
    assert other.value("SELECT COUNT(*) FROM idem_schema WHERE state = 1") == 1
    for wrong in ("0", "9999", "one"):
        assert world.idemctl(shop.config, "migrate", "--to", wrong).code == 64, wrong
    third = world.create_database()
    shop.config["databases"]["zzz"] = third.config()
    only = world.idemctl(shop.config, "--json", "--database", "zzz", "migrate")
    assert [(m["database"], m["state"]) for m in only.json["migrations"]] == [("zzz", "applied")]


def test_letters_and_keys_are_looked_for_in_every_database(world):
    shop, other = two_shops(world)
    world.migrate(shop.config)
    letter(shop.db, "S1")
    letter(other, "O1")
    last = letter(other, "O2")
    rows = world.idemctl(shop.config, "--json", "dead-letter", "list").json["dead_letters"]
    assert [(row["database"], row["biz_no"]) for row in rows] == [("shop", "S1"), ("zz_other", "O1"), ("zz_other", "O2")]
    assert numbers(world.idemctl(shop.config, "--json", "dead-letter", "list", "--limit", "2")) == ["S1", "O1"]
    only = world.idemctl(shop.config, "--json", "--database", "zz_other", "dead-letter", "list").json["dead_letters"]
    assert [row["biz_no"] for row in only] == ["O1", "O2"] and "database" not in only[0]
    shown = world.idemctl(shop.config, "--json", "dead-letter", "show", str(last))
    assert shown.code == 0 and (shown.json["database"], shown.json["biz_no"]) == ("zz_other", "O2")
    twice = world.idemctl(shop.config, "--json", "dead-letter", "show", "1")
    assert twice.code == 64 and twice.stdout == "" and "--database" in twice.stderr
    assert world.idemctl(shop.config, "--json", "--database", "shop", "dead-letter", "show", "1").json["biz_no"] == "S1"
    assert world.idemctl(shop.config, "dead-letter", "show", "999").code == 66
    story = world.idemctl(shop.config, "--json", "key", "--biz-no", "payment", "O1").json
    assert [row["database"] for row in story["dead_letters"]] == ["zz_other"] and story["records"] == []
    assert world.idemctl(shop.config, "--database", "nowhere", "key", "payment", "k").code == 64


def key_row(db, key):
    db.exec("INSERT INTO idem_rule (id, topic, rule, biz_type, action) VALUES (1, 't', 'paid', 'payment', 'pay')"
            " ON DUPLICATE KEY UPDATE id = 1")
    db.exec("INSERT INTO idem_record (biz_type, idem_key, biz_no, rule_id, params_hash, identity_hash, fingerprint_version,"
            " status, outcome, claim, source, partition_id, kafka_offset, expires_at) VALUES ('payment', %s, 'A1', 1,"
            " REPEAT('p', 32), REPEAT('i', 16), 1, 1, 'first', REPEAT('c', 8), 'kafka', 0, 0, '2030-01-01')", [key])


def test_a_key_in_two_databases_is_ambiguous(world):
    shop, other = two_shops(world)
    world.migrate(shop.config)
    key_row(shop.db, "both-1234")
    key_row(other, "both-1234")
    key_row(other, "other-1234")
    found = world.idemctl(shop.config, "--json", "key", "payment", "other-1234")
    assert found.code == 0 and found.json["database"] == "zz_other"
    both = world.idemctl(shop.config, "--json", "key", "payment", "both-1234")
    assert both.code == 64 and both.stdout == "" and "zz_other" in both.stderr
    one = world.idemctl(shop.config, "--json", "--database", "shop", "key", "payment", "both-1234")
    assert one.code == 0 and "database" not in one.json and one.json["status"] == "applied"
    none = world.idemctl(shop.config, "--json", "key", "payment", "none-1234")
    assert none.code == 66 and none.json == {"code": "UNKNOWN_KEY"}
