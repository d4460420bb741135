-- 0001: every table of idemd. The dedupe key is the clustered key of idem_record: as a secondary index every duplicate would take
-- a next-key lock and block its neighbours. No foreign keys, no JSON columns (MySQL rewrites numbers in them).
-- Forward only; never edit a migration that was applied: its checksum is stored. idemctl migrate makes idem_schema first.

CREATE TABLE IF NOT EXISTS idem_schema (
  version INT UNSIGNED NOT NULL, name VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, checksum BINARY(32) NOT NULL,
  state TINYINT UNSIGNED NOT NULL DEFAULT 0 COMMENT '0=started 1=done', applied_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  PRIMARY KEY (version)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE idem_rule (
  id SMALLINT UNSIGNED NOT NULL AUTO_INCREMENT, topic VARBINARY(249) NOT NULL, rule VARBINARY(64) NOT NULL, biz_type VARBINARY(32) NOT NULL, action VARBINARY(32) NOT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)), PRIMARY KEY (id), UNIQUE KEY uk_rule (topic, rule, biz_type, action)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE idem_record (
  bucket INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'hour since 1970 of the time contained in the key, 0 = none',
  biz_type VARBINARY(32) NOT NULL, idem_key VARBINARY(255) NOT NULL, biz_no VARBINARY(64) NOT NULL, rule_id SMALLINT UNSIGNED NOT NULL COMMENT 'idem_rule.id',
  params_hash BINARY(32) NOT NULL, identity_hash BINARY(16) NOT NULL, fingerprint_version SMALLINT UNSIGNED NOT NULL,
  status TINYINT UNSIGNED NOT NULL DEFAULT 0 COMMENT '0=processing (parked) 1=applied 2=closed without effect',
  outcome ENUM('first','already_applied','applied_by_other','state_conflict','parked','not_found','rejected') NOT NULL,
  attempts SMALLINT UNSIGNED NOT NULL DEFAULT 1, claim BINARY(8) NOT NULL, source ENUM('kafka','http','replay','redrive') NOT NULL,
  partition_id INT NOT NULL, kafka_offset BIGINT NOT NULL,
  request_id VARBINARY(128) NULL, response MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  created_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)), updated_at DATETIME(3) NOT NULL DEFAULT (UTC_TIMESTAMP(3)), expires_at DATETIME(3) NOT NULL,
  PRIMARY KEY (bucket, biz_type, idem_key), KEY ix_biz (biz_type, biz_no), KEY ix_expires (expires_at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 PARTITION BY RANGE (bucket) (PARTITION p0 VALUES LESS THAN (1));
CREATE VIEW idem_record_view AS SELECT r.bucket, CONVERT(r.biz_type USING utf8mb4) AS biz_type, CONVERT(r.idem_key USING utf8mb4) AS idem_key, CONVERT(r.biz_no USING utf8mb4) AS biz_no,
  CONVERT(d.action USING utf8mb4) AS action, CONVERT(d.rule USING utf8mb4) AS rule, CONVERT(d.topic USING utf8mb4) AS topic, LOWER(HEX(r.params_hash)) AS params_hash, LOWER(HEX(r.identity_hash)) AS identity_hash, r.fingerprint_version,
  r.status, r.outcome, r.response, r.attempts, r.request_id, r.source, r.partition_id, r.kafka_offset, r.created_at, r.updated_at, r.expires_at FROM idem_record r JOIN idem_rule d ON d.id = r.rule_id;
CREATE TABLE idem_outbox (
  seq BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, id CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  topic VARBINARY(249) NOT NULL, aggregatetype VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, aggregateid VARBINARY(255) NOT NULL,
  type VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, payload MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  headers MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL, created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  PRIMARY KEY (seq)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE idem_dead_letter (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, origin_hash BINARY(32) NOT NULL, source VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  topic VARBINARY(249) NOT NULL DEFAULT '', partition_id INT NOT NULL DEFAULT -1, kafka_offset BIGINT NOT NULL DEFAULT -1, record_ts DATETIME(3) NULL,
  rule VARBINARY(64) NOT NULL DEFAULT '', biz_type VARBINARY(32) NOT NULL DEFAULT '', idem_key VARBINARY(255) NOT NULL DEFAULT '',
  biz_no VARBINARY(64) NOT NULL DEFAULT '', request_id VARBINARY(128) NOT NULL DEFAULT '',
  outcome VARCHAR(24) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, cause VARCHAR(48) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  error_no INT UNSIGNED NOT NULL DEFAULT 0, error_text VARBINARY(512) NOT NULL DEFAULT '',
  row_state MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'the business row as it was seen, JSON text',
  record_key VARBINARY(1024) NULL, headers MEDIUMBLOB NULL, payload MEDIUMBLOB NULL, payload_bytes INT UNSIGNED NOT NULL DEFAULT 0, payload_sha256 BINARY(32) NOT NULL,
  attempts INT UNSIGNED NOT NULL DEFAULT 1, state VARCHAR(12) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'open' COMMENT 'open resolved discarded',
  note VARBINARY(255) NOT NULL DEFAULT '', created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)), updated_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  PRIMARY KEY (id), UNIQUE KEY uk_origin (origin_hash), KEY ix_state (state, id), KEY ix_biz (biz_type, biz_no)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE idem_parked (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, topic VARBINARY(249) NOT NULL, partition_id INT NOT NULL, kafka_offset BIGINT NOT NULL, record_ts DATETIME(3) NULL,
  rule VARBINARY(64) NOT NULL, biz_type VARBINARY(32) NOT NULL, biz_no VARBINARY(64) NOT NULL, idem_key VARBINARY(255) NOT NULL,
  reason VARCHAR(12) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'not_found state locked behind redrive',
  dead_letter_id BIGINT UNSIGNED NOT NULL DEFAULT 0,
  record_key VARBINARY(1024) NULL, headers MEDIUMBLOB NULL, payload MEDIUMBLOB NOT NULL, attempts INT UNSIGNED NOT NULL DEFAULT 0,
  next_attempt_at DATETIME(3) NOT NULL, give_up_at DATETIME(3) NOT NULL, created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
  PRIMARY KEY (id), UNIQUE KEY uk_key (biz_type, idem_key), KEY ix_biz (biz_type, biz_no, id), KEY ix_due (topic, partition_id, next_attempt_at)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE idem_partition (
  group_id VARBINARY(128) NOT NULL, topic VARBINARY(249) NOT NULL, partition_id INT NOT NULL, generation BIGINT UNSIGNED NOT NULL,
  owner VARBINARY(128) NOT NULL, updated_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)), PRIMARY KEY (group_id, topic, partition_id)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE idem_progress (
  group_id VARBINARY(128) NOT NULL, topic VARBINARY(249) NOT NULL, partition_id INT NOT NULL, next_offset BIGINT NOT NULL,
  last_offset BIGINT NOT NULL DEFAULT -1, last_hash BINARY(16) NULL, updated_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)), PRIMARY KEY (group_id, topic, partition_id)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
CREATE TABLE idem_lease (
  name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, owner VARBINARY(128) NOT NULL, generation BIGINT UNSIGNED NOT NULL,
  until_at DATETIME(6) NOT NULL, PRIMARY KEY (name)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
