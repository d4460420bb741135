-- SPDX-License-Identifier: MIT
-- An example of a shop's tables, on which every file of config/channels works.
-- MySQL >= 8.0.16, MariaDB >= 10.6. idemd's own tables are not here: idemctl migrate makes them.

-- States: PENDING -> PAID -> PART_REFUNDED -> REFUNDED; PENDING -> CLOSED.
CREATE TABLE orders (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  -- Compared byte by byte: A1 and a1 are two orders.
  order_no VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'PENDING',
  -- Three digits hold every currency: JPY has none, most have two, KWD and a few more have three.
  amount DECIMAL(20,3) NOT NULL,
  currency VARCHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'ISO 4217, capital letters',
  -- Stripe writes currencies in small letters, and a rule compares bytes.
  currency_lower VARCHAR(3) CHARACTER SET ascii COLLATE ascii_bin GENERATED ALWAYS AS (LOWER(currency)) STORED,
  -- Which payment paid it: NULL until then. It tells a repeated message from a second payment.
  channel VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL,
  channel_txn VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  -- The same number for looking up an order by its payment. channel_txn cannot serve: an index with NULLs is
  -- no proof that a row is the only one. Until the order is paid it holds what no channel sends.
  payment_ref VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT (CONCAT('unpaid:', order_no)),
  paid_at DATETIME NULL,
  refunded DECIMAL(20,3) NOT NULL DEFAULT 0,
  last_refund VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  PRIMARY KEY (id),
  UNIQUE KEY uk_order_no (order_no),
  UNIQUE KEY uk_payment_ref (payment_ref),
  -- The last guard of the money: a rule that would break it ends as `rejected`.
  CONSTRAINT refunded_within_amount CHECK (refunded >= 0 AND refunded <= amount)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- One row a payment that was taken.
CREATE TABLE payment_ledger (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  channel VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  channel_txn VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  order_no VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  amount DECIMAL(20,3) NOT NULL,
  currency VARCHAR(3) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'as the channel wrote it',
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id),
  UNIQUE KEY uk_txn (channel, channel_txn),
  KEY ix_order (order_no)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- One row a refund. Channels that name only the payment leave order_no NULL: join on orders.payment_ref.
CREATE TABLE refunds (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,
  channel VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  refund_txn VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  order_no VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  payment_ref VARCHAR(191) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  amount DECIMAL(20,3) NOT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id),
  UNIQUE KEY uk_refund (channel, refund_txn),
  KEY ix_order (order_no),
  KEY ix_payment (payment_ref)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
