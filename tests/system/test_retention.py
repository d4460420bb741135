# SPDX-License-Identifier: MIT
"""The retention guard: a rule's ttl against what Kafka keeps of its topic, said by the daemon when it starts."""
from shop import Shop, rules

DAY_MS = 86400000


def test_a_ttl_shorter_than_what_kafka_keeps_is_said_at_the_start(world):
    shop = Shop(world)
    kept = world.kafka.create_topic(retention_ms=2 * DAY_MS)
    forever = world.kafka.create_topic(retention_ms=-1)
    enough = world.kafka.create_topic(retention_ms=DAY_MS)
    shop.config["topics"] = {name: {"database": "shop", **rules(park={"for": "10m"})} for name in (enough, kept, forever)}
    shop.config["topics"][kept]["rules"][0]["ttl"] = "1d"
    shop.config["topics"][forever]["rules"][1]["ttl"] = "forever"
    daemon = shop.daemon()
    daemon.wait_ready()
    daemon.wait_event("check", path=f"topics.{forever}.rules.paid")
    found = {e["path"]: e for e in daemon.select("check", code="ttl")}
    assert set(found) == {f"topics.{kept}.rules.paid", f"topics.{forever}.rules.paid"}
    assert {e["level"] for e in found.values()} == {"warning"}
    assert "ttl 1d < retention.ms 2d + longest park 10m = 2d10m" in found[f"topics.{kept}.rules.paid"]["message"]
    assert "for ever" in found[f"topics.{forever}.rules.paid"]["message"]
    assert daemon.stop() == 0
