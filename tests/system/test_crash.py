# SPDX-License-Identifier: MIT
"""SIGKILL of the real daemon at every labelled step, on both worlds, then a restart: nothing lost, nothing doubled.
Needs a build with crash points (-Dprobes=true)."""
import pytest

from shop import Shop, payment, refund

POINTS = ["after_fence", "after_claim", "after_update", "after_insert", "after_statements", "after_outbox",
          "before_commit", "after_commit", "before_progress", "after_progress", "after_offset"]


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_labelled_step_and_started_again(world, point):
    shop = Shop(world, partitions=2)
    numbers = [f"C{i:03d}" for i in range(60)]
    shop.orders(numbers, amount="19.99")
    for i in range(20):
        shop.db.exec("INSERT INTO refunds VALUES (%s, %s, 'APPLIED', 1.00)", [f"RC{i}", numbers[i]])
    records = [payment(no, partition=i % 2) for i, no in enumerate(numbers)]
    records += [payment(no, partition=i % 2) for i, no in enumerate(numbers) if i % 3 == 0]
    records += [refund(f"RC{i}", numbers[i], 100, partition=i % 2) for i in range(20)]
    records += [payment(numbers[1], txn="TWICE", partition=1)]
    shop.send(*records)

    daemon = shop.daemon(env={"IDEMD_CRASH": point})
    assert daemon.wait_exit() == -9, "the crash point was not passed"
    again = shop.daemon(name="again")
    again.wait_ready()
    shop.finished()
    assert again.stop() == 0

    paid = shop.db.value("SELECT COUNT(*) FROM orders WHERE status IN ('PAID','PART_REFUNDED')")
    assert paid == 60
    assert shop.db.value("SELECT COUNT(*) FROM orders WHERE refunded = 1.00") == 20
    assert shop.db.value("SELECT COUNT(*) FROM payment_ledger") == 60
    assert shop.db.value("SELECT COUNT(*) FROM idem_record WHERE status = 1") == 80
    assert shop.db.value("SELECT COUNT(*) FROM idem_outbox WHERE topic = 'order.paid'") == 60
    assert shop.db.value("SELECT COUNT(*) FROM idem_outbox WHERE topic = 'refund.due'") == 1
    letters = shop.letters()
    assert [(r["outcome"], r["attempts"]) for r in letters] == [("applied_by_other", 1)], \
        "a redelivery never counts"
    ends = world.kafka.end_offsets(shop.topic)
    progress = {r["partition_id"]: r["next_offset"] for r in shop.db.query("SELECT * FROM idem_progress")}
    assert progress == ends


def test_killed_again_and_again_under_load(world):
    """Twenty kills at passing steps while records keep coming."""
    shop = Shop(world, partitions=3)
    numbers = [f"K{i:05d}" for i in range(4000)]
    shop.orders(numbers)
    shop.send(*[payment(no, partition=i % 3) for i, no in enumerate(numbers)],
              *[payment(no, partition=i % 3) for i, no in enumerate(numbers) if i % 3 == 0])
    for round_ in range(20):
        point = POINTS[round_ % len(POINTS)]
        if point in ("after_insert", "after_statements"):
            point = "after_commit"
        daemon = shop.daemon(name=f"round{round_}", env={"IDEMD_CRASH": f"{point}:{1 + round_ % 3}"})
        exited = daemon.wait_exit() if point not in ("before_progress", "after_progress", "after_offset") else None
        if exited is None:
            try:
                exited = daemon.wait_exit(timeout=10)
            except AssertionError:
                daemon.kill()
        if shop.counts()[0] == len(numbers):
            break
    last = shop.daemon(name="last")
    last.wait_ready()
    shop.finished()
    assert last.stop() == 0
    assert shop.counts() == (4000, 4000, 4000, 4000)
    assert shop.letters() == []
