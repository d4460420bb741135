# SPDX-License-Identifier: MIT
"""What a rule needs in the database goes away while the daemon runs: its topic waits, other topics go on, nothing of it
becomes a dead letter, and all is applied once it is back."""
import pytest

from lib import wait_until
from shop import TABLES, Shop, payment, rules

SECOND = """
CREATE TABLE bookings LIKE orders;
"""


class TwoShops(Shop):
    """Topic A pays `orders`, topic B pays `bookings`, in one database."""

    def __init__(self, world, partitions=2):
        super().__init__(world, partitions=partitions, tables=TABLES + SECOND)
        other = rules()
        paid = other["rules"][0]
        paid["biz_type"] = "booking"
        paid["transition"]["table"] = "bookings"
        del paid["insert"]
        other["rules"] = [paid]
        self.other = world.kafka.create_topic(partitions=partitions)
        self.config["topics"][self.other] = {"database": "shop", **other}

    def bookings(self, numbers):
        for no in numbers:
            self.db.exec("INSERT INTO bookings (order_no, amount) VALUES (%s, 19.99)", [no])

    def send_other(self, *records):
        self.kafka.produce(self.other, list(records))

    def booked(self):
        return self.db.value("SELECT COUNT(*) FROM bookings WHERE status = 'PAID'")


def revoke(shop):
    db = shop.db
    admin = db.server.admin
    admin(f"REVOKE ALL ON {db.name}.* FROM {db.user}@'%'")
    for table in [next(iter(row.values())) for row in db.query("SHOW TABLES")]:
        verbs = "SELECT" if table == "orders" else "SELECT, INSERT, UPDATE, DELETE"
        admin(f"GRANT {verbs} ON {db.name}.{table} TO {db.user}@'%'")
    db.server.kill_sessions(db.user)        # rights on a whole database last as long as a session


def grant(shop):
    shop.db.server.admin(f"GRANT UPDATE ON {shop.db.name}.orders TO {shop.db.user}@'%'")


def rename(shop):
    shop.db.exec("ALTER TABLE orders RENAME COLUMN paid_at TO paid_when")


def rename_back(shop):
    shop.db.exec("ALTER TABLE orders RENAME COLUMN paid_when TO paid_at")


def drop_index(shop):
    shop.db.exec("ALTER TABLE orders DROP INDEX uk_no")
    shop.world.server.kill_sessions(shop.db.user)         # it looks at every connect


def add_index(shop):
    shop.db.exec("ALTER TABLE orders ADD UNIQUE KEY uk_no (order_no)")


@pytest.mark.parametrize("broken, mend", [(revoke, grant), (rename, rename_back), (drop_index, add_index)],
                         ids=["grant", "column", "index"])
def test_one_topic_waits_and_the_other_goes_on(world, broken, mend):
    shop = TwoShops(world)
    numbers = [f"A{i:04d}" for i in range(1200)]
    shop.orders(numbers)
    shop.bookings(numbers[:300])
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.send(payment(numbers[0]))
    shop.send_other(payment(numbers[0]))
    daemon.wait_outcomes(2)
    broken(shop)
    for start in range(1, 1200, 400):
        shop.send(*[payment(no, partition=i % 2) for i, no in enumerate(numbers[start:start + 400])])
    fault = daemon.wait_event("paused", why="config")
    assert fault["topic"] == shop.topic
    shop.send_other(*[payment(no, partition=i % 2) for i, no in enumerate(numbers[1:300])])
    wait_until(lambda: shop.booked() == 300, what="the other topic")
    world.kafka.wait_committed(shop.group, shop.other)
    assert shop.counts()[0] == 1 and not daemon.select("resumed", topic=shop.topic)
    assert not daemon.select("paused", topic=shop.other)
    # The same orders once more: they wait behind the first.
    shop.send(*[payment(no, partition=i % 2) for i, no in enumerate(numbers[1:100])])
    mend(shop)
    shop.finished()
    daemon.wait_event("resumed", why="config", topic=shop.topic)
    assert daemon.stop() == 0
    assert shop.letters() == [] and not daemon.select("bisect")
    assert shop.counts()[:2] == (1200, 1200)
    assert shop.db.value("SELECT COUNT(*) FROM idem_record WHERE status = 1") == 1500
    firsts = [(o["topic"], o["key"]) for o in daemon.outcomes(outcome="first")]
    assert len(firsts) == len(set(firsts)) == 1500
    assert len(daemon.outcomes(outcome="duplicate")) == 99


def test_a_topic_that_waits_with_all_the_room_of_the_limits_leaves_the_other_its_own(world):
    shop = TwoShops(world)
    shop.config["batch"] = {"max": 50}
    shop.config["limits"] = {"inflight": 100}
    numbers = [f"F{i:04d}" for i in range(1000)]
    shop.orders(numbers)
    shop.bookings(numbers[:200])
    daemon = shop.daemon()
    daemon.wait_ready()
    rename(shop)
    shop.send(*[payment(no, partition=i % 2) for i, no in enumerate(numbers)])
    daemon.wait_event("paused", why="config", topic=shop.topic)
    shop.send_other(*[payment(no, partition=i % 2) for i, no in enumerate(numbers[:200])])
    wait_until(lambda: shop.booked() == 200, what="the other topic")
    rename_back(shop)
    shop.finished()
    assert daemon.stop() == 0 and shop.letters() == [] and shop.counts()[:2] == (1000, 1000)
    assert len(daemon.outcomes()) == len(daemon.outcomes(outcome="first")) == 1200


def test_stopping_does_not_wait_for_a_topic_that_waits(world):
    shop = TwoShops(world)
    shop.config["stop_timeout"] = "60s"
    shop.orders(["W1", "W2"])
    daemon = shop.daemon()
    daemon.wait_ready()
    rename(shop)
    shop.send(payment("W1"), payment("W2"))
    daemon.wait_event("paused", why="config", topic=shop.topic)
    assert daemon.stop(timeout=20) == 0, "what was not applied is safe in Kafka"
    rename_back(shop)
    again = shop.daemon(name="again")
    shop.finished()
    assert again.stop() == 0 and shop.counts() == (2,) * 4 and shop.letters() == []
