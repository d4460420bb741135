-- SPDX-License-Identifier: MIT
-- What the demo counts at the end: NAME VALUE.
SELECT 'orders_paid', COUNT(*) FROM orders WHERE status = 'PAID' AND channel_txn IS NOT NULL;
SELECT 'ledger_rows', COUNT(*) FROM payment_ledger;
SELECT 'payment_keys', COUNT(*) FROM idem_record WHERE biz_type = 'payment' AND status = 1;
SELECT 'paid_events', COUNT(*) FROM idem_outbox WHERE topic = 'order.paid';
SELECT 'orders_refunded', COUNT(*) FROM orders WHERE refunded = 1.00;
SELECT 'refund_rows', COUNT(*) FROM refunds;
SELECT 'refund_keys', COUNT(*) FROM idem_record WHERE biz_type = 'refund' AND status = 1;
SELECT 'refunded_events', COUNT(*) FROM idem_outbox WHERE topic = 'order.refunded';
SELECT 'refund_due_events', COUNT(*) FROM idem_outbox WHERE topic = 'refund.due';
SELECT 'dead_letters', COUNT(*) FROM idem_dead_letter;
SELECT 'wrong_sums', COUNT(*) FROM orders o
  LEFT JOIN (SELECT order_no, SUM(amount) AS paid FROM payment_ledger GROUP BY order_no) l ON l.order_no = o.order_no
  LEFT JOIN (SELECT order_no, SUM(amount) AS back FROM refunds GROUP BY order_no) r ON r.order_no = o.order_no
  WHERE COALESCE(l.paid, 0) <> o.amount OR COALESCE(r.back, 0) <> o.refunded;
