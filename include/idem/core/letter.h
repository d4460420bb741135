/* SPDX-License-Identifier: MIT */
/* letter: what a dead letter says of itself when it is published to `dead_letter.topic` (through the outbox, like any
 * event). Pure. */
#ifndef IDEM_CORE_LETTER_H
#define IDEM_CORE_LETTER_H

#include "idem/core/item.h"

/* origin_hash of the item's letter (details 3); outcome and evaluation must stand. */
void letter_origin(const struct item *item, uint8_t ret_hash[32]);

/* One JSON object: outcome, cause, rule, biz_type, idem_key, biz_no, request_id, topic, partition, offset, record_ts
 * (milliseconds), error_no, error_text, row_state, payload. What is not there is null, and so is a payload that is no
 * UTF-8 or longer than payload_max bytes. row_state: JSON text, or empty. May overflow buf. */
void letter_write_json(const struct item *item, struct bytes row_state, size_t payload_max, struct buf *buf);

/* The outbox's aggregate id: the business number, or where the record came from. At most 255 bytes. */
void letter_aggregate(const struct item *item, struct buf *buf);

#endif
