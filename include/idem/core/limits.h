/* SPDX-License-Identifier: MIT */
/* limits: every bound of the product with its reason. Bytes unless the name says otherwise. */
#ifndef IDEM_CORE_LIMITS_H
#define IDEM_CORE_LIMITS_H

enum {
    KEY_SUPPLIED_MIN = 8,       /* design 2: a supplied key is 8..255 bytes */
    KEY_MAX = 255,              /* idem_record.idem_key VARBINARY(255), the whole key with scope */
    BIZ_TYPE_MAX = 32,          /* idem_record.biz_type */
    ACTION_MAX = 32,            /* idem_rule.action */
    RULE_NAME_MAX = 64,         /* idem_rule.rule */
    BIZ_NO_MAX = 64,            /* idem_record.biz_no */
    TOPIC_MAX = 249,            /* Kafka's own limit (Topic.java: MAX_NAME_LENGTH) */
    REQUEST_ID_MAX = 128,       /* idem_record.request_id; longer is cut (details 5) */
    RECORD_KEY_MAX = 1024,      /* idem_dead_letter.record_key */
    ERROR_TEXT_MAX = 512,       /* idem_dead_letter.error_text */
    GROUP_MAX = 128,            /* idem_partition.group_id, owner */
    PARAMS_HASH_LEN = 32,
    IDENTITY_HASH_LEN = 16,
    CLAIM_LEN = 8,
    EVENT_ID_LEN = 32,          /* hex digits */
    DOC_DEPTH_MAX = 64,         /* details 1: nesting over 64 is `too_deep` */
    DECIMAL_DIGITS_MAX = 65,    /* MySQL DECIMAL */
    DECIMAL_SCALE_MAX = 30,
    EXPRS_MAX = 256,            /* distinct values one rule reads */
    TRANSITIONS_MAX = 8,        /* rows one record may move */
    WHERE_MAX = 8,              /* columns that name one row */
    IDENTITY_MAX = 8,
    REQUIRE_MAX = 8,
    STATEMENT_PARAMS_MAX = 32,
    BATCH_RECORDS_MAX = 5000    /* batch.max at most: range plans stay ranges (hazards M20) */
};

#endif
