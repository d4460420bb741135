#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""shop: the demo's orders and callbacks, the same on every run, and what must have come of them.

    shop.py orders            SQL that makes the orders
    shop.py callbacks         lines for `feed`
    shop.py total             how many lines that are
    shop.py report LOG        reads counts (NAME VALUE a line) from standard input and outcomes from
                              the daemon's log; prints both; exit 1 if a single one is off
"""
import collections
import json
import random
import re
import sys

ORDERS, REFUNDS, REPEATS, BAD = 10_000, 500, 4_500, 5

# What each record must come to.
OUTCOMES = {
    ("first", ""): ORDERS + REFUNDS,
    ("duplicate", ""): REPEATS,
    ("applied_by_other", "identity_mismatch"): BAD,
    ("state_conflict", "amount_mismatch"): BAD,
    ("key_reused", "fingerprint_mismatch"): BAD,
    ("not_found", "row_missing"): BAD,
    ("invalid", "key_missing"): BAD,
    ("invalid", "body"): BAD,
}
MEANING = {
    ("first", ""): "10 000 payments and 500 refunds, applied",
    ("duplicate", ""): "seen before, nothing done",
    ("applied_by_other", "identity_mismatch"): "paid twice: the second is to go back",
    ("state_conflict", "amount_mismatch"): "wrong amount, refused",
    ("key_reused", "fingerprint_mismatch"): "known key, other content",
    ("not_found", "row_missing"): "no such order",
    ("invalid", "key_missing"): "no key",
    ("invalid", "body"): "broken JSON",
}
# The counts that have to agree, in rows of four, then those that stand alone.
AGREE = [
    ("payments", ORDERS, ["orders_paid", "ledger_rows", "payment_keys", "paid_events"]),
    ("refunds", REFUNDS, ["orders_refunded", "refund_rows", "refund_keys", "refunded_events"]),
]
ALONE = [
    ("refund_due_events", BAD, "events that send a second payment back"),
    ("dead_letters", 6 * BAD, "dead letters, none lost"),
    ("wrong_sums", 0, "orders whose sums differ from the ledger"),
]


def order_no(i):
    return f"ORD-{i:06d}"


def amount(i):
    return f"{10 + i % 490}.{i % 100:02d}"


def orders():
    for start in range(1, ORDERS + 1, 1000):
        rows = (f"('{order_no(i)}',{amount(i)})" for i in range(start, min(start + 1000, ORDERS + 1)))
        print("INSERT INTO orders (order_no, amount) VALUES " + ",".join(rows) + ";")


def payment(i, **more):
    return {"type": "PAYMENT", "order_no": order_no(i), "channel_txn": f"TXN{i:09d}",
            "amount": amount(i), **more}


def stories():
    """For each order its callbacks in the order in which the channel sends them."""
    paid_again = REPEATS - REFUNDS // 2      # the other repeats are refunds'
    for i in range(1, ORDERS + 1):
        story = []
        if i <= BAD:                                     # the wrong amount, then the right one
            story.append(payment(i, amount="0.01"))
        story.append(payment(i))
        if i <= paid_again:
            story.append(payment(i))
        if i <= BAD:
            story.append(payment(i, channel_txn=f"TXN{i:09d}-2"))
            story.append(payment(i, amount="9999.99"))   # the same payment with other content
        if i <= REFUNDS:
            refund = {"type": "REFUND", "order_no": order_no(i), "refund_no": f"RF-{i:06d}", "amount": "1.00"}
            story += [refund] * (2 if i <= REFUNDS // 2 else 1)
        yield order_no(i), [json.dumps(m, separators=(",", ":")) for m in story]
    for i in range(1, BAD + 1):
        yield f"ORD-UNKNOWN-{i}", [json.dumps(payment(ORDERS + i, order_no=f"ORD-UNKNOWN-{i}"))]
        yield f"nokey-{i}", [json.dumps({"type": "PAYMENT", "channel_txn": f"N{i}", "amount": "1.00"})]
        yield f"broken-{i}", ['{"type":"PAYMENT","order_no":' + '"ORD-']


def lines():
    """All callbacks, mixed; those of one order keep their order."""
    dice = random.Random(20260412)
    mixed = []
    for key, story in stories():
        for when, text in zip(sorted(dice.random() for _ in story), story):
            mixed.append((when, key, text))
    mixed.sort()
    for _, key, text in mixed:
        yield f"-\t{key}\t\t{text}"


def grouped(number):
    return f"{number:,}".replace(",", " ")


def verdict(found, expected):
    return "" if found == expected else f"   <- expected {grouped(expected)}"


def outcomes_of(path):
    found = collections.Counter()
    with open(path, encoding="utf-8", errors="replace") as log:
        for line in log:
            if " event=outcome " in line:
                fields = dict(re.findall(r"(\w+)=(\S+)", line))
                found[fields.get("outcome", "?"), fields.get("cause", "")] += 1
    return found


def report(path):
    found = outcomes_of(path)
    counts = {name: int(value) for name, value in (line.split() for line in sys.stdin if line.strip())}
    off = 0
    print(f"  {'outcome':<18}{'cause':<22}{'records':>8}")
    for what in [*OUTCOMES, *sorted(set(found) - set(OUTCOMES))]:
        expected = OUTCOMES.get(what, 0)
        off += found[what] != expected
        print(f"  {what[0]:<18}{what[1]:<22}{grouped(found[what]):>8}   "
              f"{MEANING.get(what, 'not expected')}{verdict(found[what], expected)}")
    print(f"\n  {'':<12}{'orders':>10}{'ledger':>10}{'keys':>10}{'events':>10}   must agree")
    for title, expected, names in AGREE:
        same = all(counts[n] == expected for n in names)
        off += not same
        print(f"  {title:<12}" + "".join(f"{grouped(counts[n]):>10}" for n in names)
              + ("   yes" if same else f"   NO, expected {grouped(expected)}"))
    print()
    for name, expected, title in ALONE:
        off += counts[name] != expected
        print(f"  {grouped(counts[name]):>10}  {title}{verdict(counts[name], expected)}")
    return 1 if off else 0


def main(argv):
    if argv[1:] == ["orders"]:
        orders()
    elif argv[1:] == ["callbacks"]:
        print("\n".join(lines()))
    elif argv[1:] == ["total"]:
        print(sum(1 for _ in lines()))
    elif len(argv) == 3 and argv[1] == "report":
        return report(argv[2])
    else:
        print(__doc__, file=sys.stderr)
        return 64
    return 0


sys.exit(main(sys.argv))
