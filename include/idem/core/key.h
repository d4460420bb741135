/* SPDX-License-Identifier: MIT */
/* key: names and hashes, details section 3 to the byte. */
#ifndef IDEM_CORE_KEY_H
#define IDEM_CORE_KEY_H

#include "idem/base/buf.h"
#include "idem/core/limits.h"
#include "idem/core/value.h"

/* Keeps [A-Za-z0-9_.-]; every other byte becomes % and two upper-case hex digits. Appends to buf. */
void key_encode(struct bytes part, struct buf *buf);

/* [enc(scope) ":"] biz_type ":" enc(number) ":" action into buf. has_scope false: none. */
void key_derive(bool has_scope, struct bytes scope, struct bytes biz_type, struct bytes number,
                struct bytes action, struct buf *buf);

/* Matches ^[A-Za-z0-9_.:-]{8,255}$ . */
bool key_is_supplied(struct bytes key);

/* [A-Za-z0-9_.-]{1,32}, for biz_type and action. */
bool key_part_is_valid(struct bytes part);

struct hash_part {
    struct bytes name;
    enum value_tag tag;    /* VALUE_ABSENT .. VALUE_TIME */
    struct bytes value;
};

/* details 3, params_hash. */
void params_hash(uint32_t version, struct bytes action, const struct hash_part *parts, uint32_t count,
                 uint8_t ret_hash[PARAMS_HASH_LEN]);

/* parts sorted bytewise by name; count 0 (identity: none) gives 16 zero bytes. */
void identity_hash(const struct hash_part *parts, uint32_t count, uint8_t ret_hash[IDENTITY_HASH_LEN]);

/* details 3, event id: 32 hex digits, no NUL. */
void event_id(struct bytes biz_type, struct bytes key, const uint8_t identity[IDENTITY_HASH_LEN],
              struct bytes outcome, uint32_t index, char ret_hex[EVENT_ID_LEN]);

/* Of a record with a key; for applied_by_other `hash` is the identity hash (16), else the params hash (32). */
void origin_hash_key(struct bytes biz_type, struct bytes key, struct bytes hash, struct bytes outcome,
                     uint8_t ret_hash[32]);

/* Of an invalid record. payload whole; timestamp_ms -1 = none. A null payload hashes as L(""). */
void origin_hash_record(struct bytes topic, int32_t partition, int64_t offset, int64_t timestamp_ms,
                        struct bytes payload, uint8_t ret_hash[32]);

#endif
