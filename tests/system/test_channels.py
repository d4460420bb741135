# SPDX-License-Identifier: MIT
"""The shipped files of config/channels against what the channels send (tests/system/callbacks):

1. every sample, its repeat, its other statuses and its refund end with the right key, outcome, cause and rows;
2. a second payment, a wrong amount, a wrong currency, a failure before the payment, a refund of the rest, a refund beyond
   it and a refund of another payment move no money that they must not move;
3. what only one channel does: two items in one message, an encrypted message, totals that come late.
"""
import json
import pathlib
from dataclasses import dataclass
from decimal import Decimal

import pytest

from lib import Record, dump_yaml

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent

# The HTTP headers that matter, as whoever writes to Kafka hands them on.
HEADERS = {
    "paypal-payment.capture.completed": [("Paypal-Transmission-Id", "fake-tx-0001")],
    "paypal-payment.capture.completed-retry": [("Paypal-Transmission-Id", "fake-tx-0002")],
    "square-payment.updated-retry": [("square-retry-number", "1"), ("square-retry-reason", "http_timeout")],
    "razorpay-payment.captured": [("x-razorpay-event-id", "FAKEevt1001a")],
    "razorpay-payment.captured-retry": [("x-razorpay-event-id", "FAKEevt1001a")],
    "razorpay-payment.failed": [("x-razorpay-event-id", "FAKEevt1001z")],
    "razorpay-refund.processed-partial": [("x-razorpay-event-id", "FAKEevt1001b")],
}


@dataclass
class Channel:
    """What the samples of one channel hold."""
    order: str                       # the order number, as it stands in the files
    key: str                         # the key that the payment must reach
    amount: str                      # of the order
    currency: str
    txn: str
    pay: str                         # file names, without .json
    repeats: list                    # the same payment again
    refund: str
    refund_key: str
    refund_no: str                   # the business number of a refund
    refunded: str                    # by the sample
    refund_txn: str                  # what makes another refund of this one
    refund_rest: tuple               # text of the refund's amount in the sample, text of all that is left
    amount_text: tuple = ()          # text of the paid amount, text of another one
    failed: str = ""                 # a sample that must not take the key
    failed_order: str = ""           # the order in it
    failed_outcome: tuple = ("ignored", "unmatched")
    currency_text: tuple = ()        # text of the currency, text of another one
    names_payment: str = ""          # text of the payment in the refund, where the rule checks it
    by_payment: bool = False         # the refund names only the payment


CHANNELS = {
    "stripe": Channel(
        order="ORD-2026-000101", key="stripe:ORD-2026-000101:pay", amount="19.990", currency="USD",
        txn="pi_FAKE0000000000000101", pay="stripe-payment_intent.succeeded",
        repeats=["stripe-payment_intent.succeeded-retry"],
        refund="stripe-charge.refunded-partial", refund_key="ch_FAKE0000000000000101:stripe-refund:500:refund",
        refund_no="ORD-2026-000101", refunded="5.000", refund_txn="evt_FAKE00000000000000000103",
        refund_rest=('"amount_refunded": 500', '"amount_refunded": 1999'),
        amount_text=('"amount_received": 1999', '"amount_received": 1998'), currency_text=('"usd"', '"aud"'),
        failed="stripe-payment_intent.payment_failed", failed_order="ORD-2026-000102",
        names_payment="pi_FAKE0000000000000101"),
    "adyen": Channel(
        order="ORD-2026-000201", key="adyen:ORD-2026-000201:pay", amount="25.990", currency="EUR",
        txn="FAKE000000000201", pay="adyen-authorisation", repeats=["adyen-authorisation-retry"],
        refund="adyen-refund-partial", refund_key="adyen-refund:FAKE000000000299:refund",
        refund_no="ORD-2026-000201", refunded="10.000", refund_txn="FAKE000000000299",
        refund_rest=('"value": 1000', '"value": 1599'),
        amount_text=('"value": 2599', '"value": 2598'), currency_text=('"EUR"', '"USD"'),
        names_payment="FAKE000000000201"),
    "paypal": Channel(
        order="ORD-2026-000301", key="paypal:ORD-2026-000301:pay", amount="49.900", currency="USD",
        txn="FAKECAPTURE000301", pay="paypal-payment.capture.completed",
        repeats=["paypal-payment.capture.completed-retry"],
        refund="paypal-payment.capture.refunded-partial", refund_key="paypal-refund:FAKEREFUND000303:refund",
        refund_no="ORD-2026-000301", refunded="10.000", refund_txn="FAKEREFUND000303",
        refund_rest=('"amount": {"currency_code": "USD", "value": "10.00"}',
                     '"amount": {"currency_code": "USD", "value": "39.90"}'),
        amount_text=('"value": "49.90"', '"value": "49.91"'), currency_text=('"USD"', '"AUD"'),
        failed="paypal-payment.capture.declined", failed_order="ORD-2026-000302"),
    "wechatpay": Channel(
        order="ORD2026000501", key="wechatpay:ORD2026000501:pay", amount="10.000", currency="CNY",
        txn="4200009999202612010000000501", pay="wechatpay-transaction.success",
        repeats=["wechatpay-transaction.success-retry"],
        refund="wechatpay-refund.success-partial", refund_key="wechatpay-refund:RF2026000501_1:refund",
        refund_no="ORD2026000501", refunded="3.000", refund_txn="RF2026000501_1",
        refund_rest=('"refund": 300', '"refund": 700'),
        amount_text=('"total": 1000', '"total": 900'), currency_text=('"currency": "CNY"', '"currency": "HKD"'),
        failed="wechatpay-transaction.success-encrypted", failed_outcome=("invalid", "unmatched"),
        names_payment="4200009999202612010000000501"),
    "square": Channel(
        order="ORD-2026-000701", key="square:ORD-2026-000701:pay", amount="25.000", currency="USD",
        txn="SQPAYFAKE701", pay="square-payment.updated",
        repeats=["square-payment.updated-retry", "square-payment.updated-fees"],
        refund="square-refund.updated-partial", refund_key="square-refund:SQPAYFAKE701_RF1:refund",
        refund_no="SQPAYFAKE701", refunded="7.000", refund_txn="SQPAYFAKE701_RF1",
        refund_rest=('"amount": 700', '"amount": 1800'),
        amount_text=('"amount": 2500', '"amount": 2501'), currency_text=('"USD"', '"CAD"'), by_payment=True),
    "checkout": Channel(
        order="ORD 2026/000901", key="checkout:ORD%202026%2F000901:pay", amount="65.400", currency="EUR",
        txn="pay_fake000000000000000000901", pay="checkout-payment_captured",
        repeats=["checkout-payment_captured-retry"],
        refund="checkout-payment_refunded-partial",
        refund_key="checkout-refund:act_fake00000000000000000901b:refund",
        refund_no="pay_fake000000000000000000901", refunded="15.400", refund_txn="act_fake00000000000000000901b",
        refund_rest=('"amount": 1540', '"amount": 5000'),
        amount_text=('"amount": 6540', '"amount": 654'), currency_text=('"EUR"', '"GBP"'),
        failed="checkout-payment_declined", failed_order="ORD-2026-000902", by_payment=True),
    "razorpay": Channel(
        order="ORD-2026-001001", key="razorpay:ORD-2026-001001:pay", amount="500.000", currency="INR",
        txn="pay_FAKE0000001001", pay="razorpay-payment.captured", repeats=["razorpay-payment.captured-retry"],
        refund="razorpay-refund.processed-partial", refund_key="razorpay-refund:rfnd_FAKE0000001001:refund",
        refund_no="ORD-2026-001001", refunded="120.000", refund_txn="rfnd_FAKE0000001001",
        refund_rest=('"amount": 12000', '"amount": 38000'),
        amount_text=('"amount": 50000', '"amount": 5000'), currency_text=('"currency": "INR"', '"currency": "USD"'),
        failed="razorpay-payment.failed", failed_order="ORD-2026-001001", names_payment="pay_FAKE0000001001"),
}


def sample(name, *replacements):
    """The bytes of a sample; each (old, new) must be in it."""
    text = (HERE / "callbacks" / f"{name}.json").read_text(encoding="utf-8")
    for old, new in replacements:
        assert old in text, f"{name} holds no {old}"
        text = text.replace(old, new)
    return Record(value=text.encode(), headers=HEADERS.get(name, []), partition=0)


class Desk:
    """One channel's shipped file on a database of its own, with the topic under a name of its own."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.db = world.create_database()
        self.db.script((TOP / "config/example/schema.sql").read_text(encoding="utf-8"))
        self.topic = world.kafka.create_topic(partitions=1)
        shipped = (TOP / f"config/channels/{name}.yaml").read_text(encoding="utf-8")
        head, topics = shipped.split("\ntopics:\n")
        assert f"group: idemd-{name}\n" in head and topics.count(f"callbacks.{name}:") == 1
        ours = world.config(self.db, {})
        del ours["topics"]
        self.group = ours["kafka"]["group"]
        self.config = dump_yaml(ours) + "\ntopics:\n" + topics.replace(f"callbacks.{name}:", f"{self.topic}:")
        world.migrate(self.config)
        self.daemon = None
        self._seen = 0

    def start(self):
        self.daemon = self.world.daemon(self.config)
        self.daemon.wait_ready()

    def order(self, no, amount, currency, status="PENDING"):
        self.db.exec("INSERT INTO orders (order_no, amount, currency, status) VALUES (%s,%s,%s,%s)",
                     [no, amount, currency, status])

    def send(self, *records):
        """The outcome lines of these records, in their order."""
        self.world.kafka.produce(self.topic, list(records))
        self._seen += len(records)
        lines = self.daemon.wait_outcomes(self._seen)
        assert len(lines) == self._seen
        return sorted(lines, key=lambda line: int(line["offset"]))[self._seen - len(records):]

    def row(self, no):
        return self.db.one("SELECT * FROM orders WHERE order_no = %s", [no])

    def ledger(self, no):
        return self.db.query("SELECT * FROM payment_ledger WHERE order_no = %s", [no])

    def record(self, key):
        return self.db.one("SELECT * FROM idem_record_view WHERE idem_key = %s", [key])

    def records(self):
        return {r["idem_key"]: (r["status"], r["outcome"], r["attempts"])
                for r in self.db.query("SELECT * FROM idem_record_view")}

    def events(self, topic):
        return [json.loads(r["payload"]) for r in
                self.db.query("SELECT payload FROM idem_outbox WHERE topic = %s ORDER BY seq", [topic])]

    def letters(self):
        return [(r["outcome"], r["cause"]) for r in
                self.db.query("SELECT outcome, cause FROM idem_dead_letter ORDER BY id")]

    def finished(self):
        self.world.kafka.wait_committed(self.group, self.topic, None)


def short(line):
    return line["outcome"], line.get("cause")


@pytest.fixture(params=sorted(CHANNELS))
def channel(request):
    return request.param


def test_every_sample_its_repeat_its_other_status_and_its_refund(world, channel):
    c, desk = CHANNELS[channel], Desk(world, channel)
    desk.order(c.order, c.amount, c.currency)
    if c.failed_order and c.failed_order != c.order:
        desk.order(c.failed_order, c.amount, c.currency)
    desk.start()

    # A failure first: it must leave the key free.
    if c.failed:
        line = desk.send(sample(c.failed))[0]
        assert short(line) == c.failed_outcome and "key" not in line
        assert desk.records() == {}
        assert desk.row(c.order)["status"] == "PENDING"

    first = desk.send(sample(c.pay))[0]
    assert short(first) == ("first", None)
    assert (first["key"], first["biz_no"], first["biz_type"], first["action"], first["rule"]) == \
        (c.key, c.order, channel, "pay", "paid")
    order = desk.row(c.order)
    assert (order["status"], order["channel"], order["channel_txn"], order["payment_ref"]) == \
        ("PAID", channel, c.txn, c.txn)
    assert order["paid_at"] is not None and order["refunded"] == 0
    assert [(r["channel"], r["channel_txn"], r["amount"]) for r in desk.ledger(c.order)] == \
        [(channel, c.txn, Decimal(c.amount))]

    # The same payment again, as the channel repeats it, and byte by byte.
    for repeat in [*c.repeats, c.pay]:
        line = desk.send(sample(repeat))[0]
        assert (line["outcome"], line["key"], line["first_outcome"]) == ("duplicate", c.key, "first"), repeat
    if c.failed:
        assert short(desk.send(sample(c.failed))[0]) == c.failed_outcome
    assert desk.row(c.order) == order
    assert desk.records() == {c.key: (1, "first", 1)}
    paid = desk.events("order.paid")
    assert len(paid) == 1
    assert (paid[0]["order_no"], paid[0]["channel"], paid[0]["amount"]) == (c.order, channel, c.amount)

    refund, again = desk.send(sample(c.refund), sample(c.refund))
    assert short(refund) == ("first", None) and short(again) == ("duplicate", None)
    assert refund["key"] == again["key"] == c.refund_key
    assert (refund["biz_no"], refund["biz_type"], refund["action"]) == (c.refund_no, f"{channel}-refund", "refund")
    order = desk.row(c.order)
    assert (order["status"], order["refunded"]) == ("PART_REFUNDED", Decimal(c.refunded))

    # A payment's repeat after its refund is still the payment.
    assert short(desk.send(sample(c.pay))[0]) == ("duplicate", None)
    assert desk.row(c.order) == order
    assert desk.records() == {c.key: (1, "first", 1), c.refund_key: (1, "first", 1)}
    if channel != "stripe":          # whose event names no refund
        row = desk.db.one("SELECT * FROM refunds")
        assert (row["channel"], row["amount"]) == (channel, Decimal(c.refunded))
        assert (row["order_no"], row["payment_ref"]) == ((None, c.txn) if c.by_payment else (c.order, None))
    assert len(desk.events("order.refunded")) == 1 and desk.events("refund.due") == []
    if c.failed_order and c.failed_order != c.order:
        assert desk.row(c.failed_order)["status"] == "PENDING"
    assert desk.letters() == ([c.failed_outcome] * 2 if c.failed_outcome[0] == "invalid" else [])
    desk.finished()
    assert desk.daemon.stop() == 0


def test_money_moves_only_where_it_must(world, channel):
    c, desk = CHANNELS[channel], Desk(world, channel)

    def payment(no, txn, *more):
        return sample(c.pay, (c.order, no), (c.txn, txn), *more)

    def refund(no, txn, name, *more):
        # Where the refund names only the payment, that is what stands for the order.
        where = [(c.txn, txn)] if c.by_payment or c.names_payment else []
        own = c.refund_txn.replace(c.txn, txn)
        if channel == "wechatpay":   # has a number of its own beside the shop's
            where.append(("50300009992026120200000000501", f"W{name}"))
        return sample(c.refund, *([] if c.by_payment else [(c.order, no)]), *where,
                      *([(own, name)] if channel != "stripe" else []), *more)

    for no in ("TWICE", "AMOUNT", "CURRENCY", "CLOSED", "WHOLE"):
        desk.order(no, c.amount, c.currency, "CLOSED" if no == "CLOSED" else "PENDING")
    desk.start()

    # Two payments of one order: the first counts, the second has to go back.
    lines = desk.send(payment("TWICE", "TXN_A"), payment("TWICE", "TXN_B"), payment("TWICE", "TXN_B"))
    assert [short(l) for l in lines] == [("first", None)] + [("applied_by_other", "identity_mismatch")] * 2
    assert [r["channel_txn"] for r in desk.ledger("TWICE")] == ["TXN_A"]
    assert desk.row("TWICE")["channel_txn"] == "TXN_A"
    assert [(e["order_no"], e["channel_txn"], e["amount"]) for e in desk.events("refund.due")] == \
        [("TWICE", "TXN_B", c.amount)]

    # Another amount, another currency, a closed order, no order.
    lines = desk.send(payment("AMOUNT", "TXN_C", c.amount_text), payment("CURRENCY", "TXN_D", c.currency_text),
                      payment("CLOSED", "TXN_E"))
    assert [short(l) for l in lines] == [("state_conflict", "amount_mismatch"),
                                         ("state_conflict", "require_mismatch"), ("state_conflict", "state")]
    assert [desk.row(no)["status"] for no in ("AMOUNT", "CURRENCY", "CLOSED")] == ["PENDING", "PENDING", "CLOSED"]
    assert [r["channel_txn"] for r in desk.db.query("SELECT channel_txn FROM payment_ledger")] == ["TXN_A"]
    # The failed attempt does not hold the key: the right amount is taken afterwards.
    assert short(desk.send(payment("AMOUNT", "TXN_C"))[0]) == ("first", None)
    # One payment cannot pay two orders.
    assert short(desk.send(payment("CURRENCY", "TXN_C"))[0]) == ("rejected", "unique_conflict")
    assert desk.row("CURRENCY")["status"] == "PENDING"

    # A refund in two parts, then one too many.
    assert short(desk.send(payment("WHOLE", "TXN_F"))[0]) == ("first", None)
    if c.names_payment:
        line = desk.send(refund("WHOLE", "TXN_OTHER", "RFD_0"))[0]
        assert short(line) == ("state_conflict", "require_mismatch")
        assert desk.row("WHOLE")["refunded"] == 0 and desk.row("WHOLE")["status"] == "PAID"
    lines = desk.send(refund("WHOLE", "TXN_F", "RFD_1"), refund("WHOLE", "TXN_F", "RFD_1"),
                      refund("WHOLE", "TXN_F", "RFD_2", c.refund_rest))
    assert [short(l) for l in lines] == [("first", None), ("duplicate", None), ("first", None)]
    order = desk.row("WHOLE")
    assert (order["status"], order["refunded"]) == ("REFUNDED", Decimal(c.amount))
    if channel != "stripe":
        line = desk.send(refund("WHOLE", "TXN_F", "RFD_3"))[0]
        assert short(line) == ("state_conflict", "state")
        assert desk.db.value("SELECT SUM(amount) FROM refunds") == Decimal(c.amount)
        # More than what is left, while something is left.
        assert short(desk.send(refund("TWICE", "TXN_A", "RFD_4", c.refund_rest))[0]) == ("first", None)
        partly = desk.row("TWICE")
        line = desk.send(refund("TWICE", "TXN_A", "RFD_5", c.refund_rest))[0]
        assert short(line) == ("state_conflict", "statement_count")
        assert desk.row("TWICE") == partly
    assert desk.row("WHOLE") == order
    desk.finished()
    assert desk.daemon.stop() == 0


def test_the_shipped_file_passes_check(world, channel):
    desk = Desk(world, channel)
    result = world.idemctl(desk.config, "--json", "check")
    assert result.code in (0, 1), result
    serious = [f for f in result.json["findings"] if f["code"] in
               ("no_unique_index", "column_type", "plan", "identity", "unknown_state", "ttl")]
    assert serious == []


def test_adyen_two_items_in_one_message_are_refused_whole(world):
    desk = Desk(world, "adyen")
    desk.order("ORD-2026-000203", "1200.000", "CLP")
    desk.order("ORD-2026-000204", "42.000", "EUR")
    desk.start()
    assert short(desk.send(sample("adyen-batch-two"))[0]) == ("invalid", "batch")
    assert desk.records() == {} and desk.letters() == [("invalid", "batch")]
    assert {r["status"] for r in desk.db.query("SELECT status FROM orders")} == {"PENDING"}


def test_adyen_decimals_and_refused_attempts_are_adyens_own(world):
    desk = Desk(world, "adyen")
    desk.order("ORD-2026-000201", "25.990", "CLP")
    desk.start()
    refused = ('"success": "true"', '"success": "false"')
    psp = ("FAKE000000000201", "FAKE000000000200")
    clp = ('"EUR"', '"CLP"')
    lines = desk.send(sample("adyen-authorisation", refused, psp, clp), sample("adyen-authorisation", clp),
                      sample("adyen-authorisation", refused, psp, clp))
    assert [short(l) for l in lines] == [("ignored", "unmatched"), ("first", None), ("ignored", "unmatched")]
    assert desk.row("ORD-2026-000201")["channel_txn"] == "FAKE000000000201"


def test_stripe_totals_that_come_twice_or_late_change_nothing(world):
    c, desk = CHANNELS["stripe"], Desk(world, "stripe")
    desk.order(c.order, c.amount, c.currency)
    desk.start()

    def total(cents, event):
        return sample(c.refund, ('"amount_refunded": 500', f'"amount_refunded": {cents}'), (c.refund_txn, event))

    lines = desk.send(sample(c.pay), total(500, "evt_1"), total(500, "evt_2"), total(900, "evt_3"), total(700, "evt_4"))
    assert [short(l) for l in lines] == [("first", None), ("first", None), ("duplicate", None), ("first", None),
                                         ("already_applied", "superseded")]
    order = desk.row(c.order)
    assert (order["status"], order["refunded"]) == ("PART_REFUNDED", Decimal("9.000"))
    lines = desk.send(total(1999, "evt_5"), total(1500, "evt_6"))
    assert [short(l) for l in lines] == [("first", None), ("already_applied", None)]
    order = desk.row(c.order)
    assert (order["status"], order["refunded"]) == ("REFUNDED", Decimal(c.amount))
    assert desk.letters() == [] and len(desk.events("order.refunded")) == 3


@pytest.mark.parametrize("channel_name,code,minor,major", [
    ("stripe", "jpy", 1999, "1999.000"), ("stripe", "kwd", 1990, "1.990"), ("adyen", "JPY", 2599, "2599.000"),
    ("adyen", "KWD", 2599, "2.599"), ("square", "JPY", 2500, "2500.000"), ("checkout", "JPY", 6540, "6540.000"),
    ("razorpay", "KWD", 50000, "50.000")])
def test_minor_units_follow_the_currency(world, channel_name, code, minor, major):
    c, desk = CHANNELS[channel_name], Desk(world, channel_name)
    desk.order(c.order, major, code.upper())
    desk.start()
    old, _ = c.amount_text
    new = f"{old.split(':')[0]}: {minor}"
    currency = c.currency.lower() if channel_name == "stripe" else c.currency
    line = desk.send(sample(c.pay, (old, new), (f'"{currency}"', f'"{code}"')))[0]
    assert short(line) == ("first", None)
    assert desk.ledger(c.order)[0]["amount"] == Decimal(major)
