/* SPDX-License-Identifier: MIT */
/* letter: see idem/core/letter.h. Never decides whether a record gets a letter. */
#include "idem/core/letter.h"

#include "idem/core/key.h"

void letter_origin(const struct item *item, uint8_t ret_hash[32])
{
    const struct evaluation *eval = &item->eval;
    if (item->outcome == OUTCOME_INVALID || !eval->rule || !eval->key.len) {
        origin_hash_record(item->record.topic, item->record.partition, item->record.offset, item->record.timestamp_ms,
                           item->record.value, ret_hash);
        return;
    }
    struct bytes hash = item->outcome == OUTCOME_APPLIED_BY_OTHER ? bytes_of(eval->identity_hash, IDENTITY_HASH_LEN)
                                                                  : bytes_of(eval->params_hash, PARAMS_HASH_LEN);
    origin_hash_key(eval->rule->biz_type, eval->key, hash, bytes_text(outcome_name(item->outcome)), ret_hash);
}

static void put_name(struct buf *buf, const char *name)
{
    buf_text(buf, buf->len > 1 ? ",\"" : "\"");
    buf_text(buf, name);
    buf_text(buf, "\":");
}

static void put_text(struct buf *buf, const char *name, struct bytes text)
{
    put_name(buf, name);
    if (text.len && bytes_is_utf8(text))
        buf_json_string(buf, text);
    else
        buf_text(buf, "null");
}

static void put_number(struct buf *buf, const char *name, int64_t number)
{
    put_name(buf, name);
    buf_int(buf, number);
}

void letter_write_json(const struct item *item, struct bytes row_state, size_t payload_max, struct buf *buf)
{
    const struct record *record = &item->record;
    const struct rule *rule = item->eval.rule;
    struct bytes none = {0};
    buf_char(buf, '{');
    put_text(buf, "outcome", bytes_text(outcome_name(item->outcome)));
    put_text(buf, "cause", bytes_text(cause_name(item->cause)));
    put_text(buf, "rule", rule ? rule->name : none);
    put_text(buf, "biz_type", rule ? rule->biz_type : none);
    put_text(buf, "idem_key", item->eval.key);
    put_text(buf, "biz_no", item->eval.biz_no);
    put_text(buf, "request_id", item->eval.request_id);
    put_text(buf, "topic", record->topic);
    put_number(buf, "partition", record->partition);
    put_number(buf, "offset", record->offset);
    if (record->timestamp_ms >= 0)
        put_number(buf, "record_ts", record->timestamp_ms);
    else
        put_text(buf, "record_ts", none);
    put_number(buf, "error_no", item->error_number > 0 ? item->error_number : 0);
    put_text(buf, "error_text", item->error_text);
    put_name(buf, "row_state");
    buf_bytes(buf, row_state.len ? row_state : BYTES_LIT("null"));
    put_text(buf, "payload", record->value.len <= payload_max ? record->value : none);
    buf_char(buf, '}');
}

void letter_aggregate(const struct item *item, struct buf *buf)
{
    if (item->eval.biz_no.len) {
        buf_bytes(buf, item->eval.biz_no);
        return;
    }
    buf_bytes(buf, item->record.topic);                  /* 249 bytes at most, so that the rest may be cut */
    buf_printf(buf, "/%d/%lld", (int)item->record.partition, (long long)item->record.offset);
}
