-- SPDX-License-Identifier: MIT
-- The demo's shop: orders, and a ledger and refunds that must agree with them.
CREATE TABLE orders (
  order_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'PENDING',
  amount DECIMAL(12,2) NOT NULL,
  refunded DECIMAL(12,2) NOT NULL DEFAULT 0,
  channel_txn VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  last_refund VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  paid_at DATETIME NULL,
  PRIMARY KEY (order_no)) ENGINE=InnoDB;
CREATE TABLE payment_ledger (
  channel_txn VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  order_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  amount DECIMAL(12,2) NOT NULL,
  PRIMARY KEY (channel_txn)) ENGINE=InnoDB;
CREATE TABLE refunds (
  refund_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  order_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  amount DECIMAL(12,2) NOT NULL,
  PRIMARY KEY (refund_no)) ENGINE=InnoDB;
