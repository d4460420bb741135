/* SPDX-License-Identifier: MIT */
/* effects_records: dead letters and the final form of dedupe rows. Both are exact about what stays
 * of an earlier delivery (details 1, "Dead letter upsert"; details 2, K4, K5). */
#include "store_self.h"

#include "idem/base/sha256.h"
#include "idem/core/letter.h"
#include "idem/core/timezone.h"

/* ---- dead letters ---------------------------------------------------------------------------------------------- */

struct bytes cut(struct bytes bytes, size_t len)
{
    return bytes.len > len ? bytes_of(bytes.at, len) : bytes;
}

void put_raw(struct buf *sql, struct bytes bytes)
{
    buf_text(sql, ",_binary");
    sql_string(sql, bytes);
}

void put_raw_or_null(struct buf *sql, struct bytes bytes, bool present)
{
    if (present)
        put_raw(sql, bytes);
    else
        buf_text(sql, ",NULL");
}

/* UTC, NULL where DATETIME has no such moment. */
void put_record_time(struct buf *sql, int64_t timestamp_ms)
{
    const int64_t last = INT64_C(253402300799999);       /* 9999-12-31 23:59:59.999 */
    int year, month, day;
    if (timestamp_ms < 0 || timestamp_ms > last) {
        buf_text(sql, ",NULL");
        return;
    }
    int64_t in_day = timestamp_ms % 86400000;
    days_to_civil(timestamp_ms / 86400000, &year, &month, &day);
    buf_printf(sql, ",'%04d-%02d-%02d %02d:%02d:%02d.%03d'", year, month, day,
               (int)(in_day / 3600000), (int)(in_day / 60000 % 60), (int)(in_day / 1000 % 60),
               (int)(in_day % 1000));
}

static void put_letter_values(struct mysql_store *store, const struct item *item,
                              struct bytes row_state)
{
    struct buf *sql = &store->sql;
    const struct record *record = &item->record;
    const struct rule *rule = item->eval.rule;
    uint8_t hash[SHA256_LEN];
    letter_origin(item, hash);
    sql_hex(sql, bytes_of(hash, sizeof hash));
    buf_text(sql, ",'");
    buf_text(sql, source_name(record->source));
    buf_char(sql, '\'');
    put_raw(sql, record->topic);
    buf_char(sql, ',');
    buf_int(sql, record->partition);
    buf_char(sql, ',');
    buf_int(sql, record->offset);
    put_record_time(sql, record->timestamp_ms);
    put_raw(sql, rule ? rule->name : BYTES_LIT(""));
    put_raw(sql, rule ? rule->biz_type : BYTES_LIT(""));
    put_raw(sql, item->eval.key);
    put_raw(sql, item->eval.biz_no);
    put_raw(sql, item->eval.request_id);
    buf_text(sql, ",'");
    buf_text(sql, outcome_name(item->outcome));
    buf_text(sql, "','");
    buf_text(sql, cause_name(item->cause));
    buf_text(sql, "',");
    buf_uint(sql, (uint64_t)(item->error_number > 0 ? item->error_number : 0));
    put_raw(sql, cut(item->error_text, ERROR_TEXT_MAX));
    buf_char(sql, ',');
    if (row_state.len)
        sql_string(sql, row_state);
    else
        buf_text(sql, "NULL");
    put_raw_or_null(sql, cut(record->key, RECORD_KEY_MAX), record->has_key);
    put_raw_or_null(sql, record->headers, record->headers.len > 0);
    put_raw_or_null(sql, cut(record->value, store->config->dead_letter.payload_max),
                    record->has_value);
    buf_char(sql, ',');
    buf_uint(sql, record->value.len);
    buf_char(sql, ',');
    sha256(record->value, hash);
    sql_hex(sql, bytes_of(hash, sizeof hash));
}

/* Payload and origin keep the first; what was found out is the newest. */
static void put_letter_update(struct buf *sql, const struct item *item, struct bytes row_state)
{
    buf_text(sql, ") ON DUPLICATE KEY UPDATE attempts=attempts+IF(topic=_binary");
    sql_string(sql, item->record.topic);
    buf_text(sql, " AND partition_id=");
    buf_int(sql, item->record.partition);
    buf_text(sql, " AND kafka_offset=");
    buf_int(sql, item->record.offset);
    buf_text(sql, ",0,1),cause='");
    buf_text(sql, cause_name(item->cause));
    buf_text(sql, "',error_no=");
    buf_uint(sql, (uint64_t)(item->error_number > 0 ? item->error_number : 0));
    buf_text(sql, ",error_text=_binary");
    sql_string(sql, cut(item->error_text, ERROR_TEXT_MAX));
    buf_text(sql, ",row_state=");
    if (row_state.len)
        sql_string(sql, row_state);
    else
        buf_text(sql, "NULL");
    buf_text(sql, ",state=IF(state='resolved','open',state),updated_at=UTC_TIMESTAMP(6)");
}

/* A new letter goes to dead_letter.topic as an event does. Its id is the first half of its origin: the same fact has
 * the same id after any replay. */
static enum err_class announce(struct mysql_store *store, const struct item *item, struct bytes row_state,
                               struct err *err)
{
    char id[EVENT_ID_LEN], name[256];
    uint8_t origin[SHA256_LEN];
    struct buf aggregate, *text = &store->text, *sql = store_sql(store);
    letter_origin(item, origin);
    bytes_hex(bytes_of(origin, EVENT_ID_LEN / 2), id);
    buf_init(&aggregate, name, sizeof name - 1);
    letter_aggregate(item, &aggregate);
    buf_reset(text);
    letter_write_json(item, row_state, store->config->dead_letter.payload_max, text);
    if (text->overflow) {                                /* escapes made it too long: without its payload */
        buf_reset(text);
        letter_write_json(item, row_state, 0, text);
    }
    buf_text(sql, "INSERT INTO idem_outbox(id,topic,aggregatetype,aggregateid,type,payload) VALUES ('");
    buf_put(sql, id, EVENT_ID_LEN);
    buf_text(sql, "',_binary");
    sql_string(sql, store->config->dead_letter.topic);
    buf_text(sql, ",'dead_letter',_binary");
    sql_string(sql, buf_view(&aggregate));
    buf_text(sql, ",'");
    buf_text(sql, outcome_name(item->outcome));
    buf_text(sql, "',");
    sql_string(sql, buf_view(text));
    buf_char(sql, ')');
    return text->overflow ? err_set(err, ERR_TOO_LARGE, 0, "letter", "the letter does not fit into a statement")
                          : store_run(store, "letter", err);
}

enum err_class store_letter(void *self, const struct item *item, struct bytes row_state,
                            bool *ret_new, struct err *err)
{
    struct mysql_store *store = self;
    struct buf *sql = store_sql(store);
    buf_text(sql, "INSERT INTO idem_dead_letter(origin_hash,source,topic,partition_id,kafka_offset,"
                  "record_ts,rule,biz_type,idem_key,biz_no,request_id,outcome,cause,error_no,"
                  "error_text,row_state,record_key,headers,payload,payload_bytes,payload_sha256) "
                  "VALUES (");
    put_letter_values(store, item, row_state);
    put_letter_update(sql, item, row_state);
    enum err_class class = store_run(store, "letter", err);
    if (class)
        return class;
    *ret_new = conn_affected(store->conn) == 1;          /* 2: it stood before */
    return *ret_new && store->config->dead_letter.topic.len ? announce(store, item, row_state, err) : ERR_NONE;
}

/* ---- dedupe rows ----------------------------------------------------------------------------------------------- */

static void put_status(struct buf *sql, const struct item *item)
{
    buf_text(sql, " SET outcome='");
    buf_text(sql, outcome_name(item->outcome));
    buf_text(sql, "',status=");
    buf_uint(sql, outcome_row(item->outcome)->status);
    buf_text(sql, ",updated_at=UTC_TIMESTAMP(3),expires_at=");
    put_expires(sql, item->eval.rule);
}

/* NULL unless status 1 (details 1). */
static void put_response(struct buf *sql, const struct item *item)
{
    buf_text(sql, ",response=");
    if (item->response.len && outcome_row(item->outcome)->status == RECORD_APPLIED)
        sql_string(sql, item->response);
    else
        buf_text(sql, "NULL");
}

/* Runs what must change exactly one row of idem_record; `gone` says what is amiss if it did not. */
static enum err_class run_on_one(struct mysql_store *store, const char *gone, struct err *err)
{
    enum err_class class = store_run(store, "records", err);
    if (class)
        return class;
    return conn_affected(store->conn) == 1 ? ERR_NONE : err_set(err, ERR_FATAL, 0, "records", "%s", gone);
}

/* A parked record's own row (K6): the claim says that this attempt judged it, whatever came of it. */
static enum err_class retry_row(struct mysql_store *store, struct item *item, struct bytes claim, struct err *err)
{
    struct buf *sql = store_sql(store);
    buf_text(sql, "UPDATE idem_record FORCE INDEX (PRIMARY)");
    if (item->outcome == OUTCOME_PARKED) {
        buf_text(sql, " SET claim=");
    } else {
        put_status(sql, item);
        put_response(sql, item);
        buf_text(sql, ",claim=");
    }
    sql_hex(sql, claim);
    put_keys(sql, &item, 1);
    return run_on_one(store, "the dedupe row of a parked record is gone", err);
}

/* Rows that this attempt inserted as `first` and that turned out otherwise; all of one rule and
 * outcome. A status 1 outcome keeps the response that the insert brought. */
static enum err_class close_rows(struct mysql_store *store, uint32_t count, struct bytes claim,
                                 struct err *err)
{
    const struct item *item = store->sorted[0];
    struct buf *sql = store_sql(store);
    buf_text(sql, "UPDATE idem_record FORCE INDEX (PRIMARY)");
    put_status(sql, item);
    if (outcome_row(item->outcome)->status != RECORD_APPLIED)
        buf_text(sql, ",response=NULL");
    put_keys(sql, store->sorted, count);
    buf_text(sql, " AND claim=");
    sql_hex(sql, claim);
    enum err_class class = store_run(store, "records", err);
    if (class)
        return class;
    if (conn_affected(store->conn) != count)
        return err_set(err, ERR_FATAL, 0, "records", "%llu of %u rows of this attempt were closed",
                       (unsigned long long)conn_affected(store->conn), (unsigned)count);
    return ERR_NONE;
}

static bool closes(const struct item *item)
{
    return item->write == WRITE_CLOSE && item->outcome != OUTCOME_FIRST;
}

static enum err_class close_all(struct mysql_store *store, struct item *const *items, uint32_t count,
                                struct bytes claim, struct err *err)
{
    enum err_class class = ERR_NONE;
    for (uint32_t i = 0; i < count; i++)
        store->seen[i] = false;
    for (uint32_t i = 0; i < count && !class; i++) {
        uint32_t alike = 0;
        if (store->seen[i] || !closes(items[i]))
            continue;
        for (uint32_t k = i; k < count; k++) {
            if (store->seen[k] || !closes(items[k]) || items[k]->eval.rule != items[i]->eval.rule ||
                items[k]->outcome != items[i]->outcome)
                continue;
            store->seen[k] = true;
            store->sorted[alike++] = items[k];
        }
        items_sort_by_key(store->sorted, alike);
        class = close_rows(store, alike, claim, err);
    }
    return class;
}

/* K4, K5: everything replaced, judged once more. */
static enum err_class replace_row(struct mysql_store *store, struct item *item, struct bytes claim,
                                  struct err *err)
{
    const struct rule *rule = item->eval.rule;
    struct buf *sql = store_sql(store);
    buf_text(sql, "UPDATE idem_record FORCE INDEX (PRIMARY)");
    put_status(sql, item);
    buf_text(sql, ",attempts=LEAST(attempts+1,65535),claim=");
    sql_hex(sql, claim);
    buf_text(sql, ",rule_id=");
    buf_uint(sql, rule->id);
    buf_text(sql, ",biz_no=_binary");
    sql_string(sql, item->eval.biz_no);
    buf_text(sql, ",params_hash=");
    sql_hex(sql, bytes_of(item->eval.params_hash, PARAMS_HASH_LEN));
    buf_text(sql, ",identity_hash=");
    sql_hex(sql, bytes_of(item->eval.identity_hash, IDENTITY_HASH_LEN));
    buf_text(sql, ",fingerprint_version=");
    buf_uint(sql, rule->fingerprint_version);
    buf_text(sql, ",source='");
    buf_text(sql, source_name(item->record.source));
    buf_text(sql, "',partition_id=");
    buf_int(sql, item->record.partition);
    buf_text(sql, ",kafka_offset=");
    buf_int(sql, item->record.offset);
    buf_text(sql, ",request_id=");
    buf_text(sql, item->eval.request_id.len ? "_binary" : "NULL");
    if (item->eval.request_id.len)
        sql_string(sql, item->eval.request_id);
    put_response(sql, item);
    put_keys(sql, &item, 1);
    return run_on_one(store, "a locked dedupe row is gone", err);
}

enum err_class store_records(void *self, struct item *const *items, uint32_t count,
                             const uint8_t claim[CLAIM_LEN], struct err *err)
{
    struct mysql_store *store = self;
    if (count > store->places)
        return err_set(err, ERR_TOO_LARGE, 0, "records", "more records than batch.max");
    enum err_class class = close_all(store, items, count, bytes_of(claim, CLAIM_LEN), err);
    for (uint32_t i = 0; i < count && !class; i++) {
        if (items[i]->write == WRITE_REPLACE)
            class = replace_row(store, items[i], bytes_of(claim, CLAIM_LEN), err);
        else if (items[i]->write == WRITE_RETRY)
            class = retry_row(store, items[i], bytes_of(claim, CLAIM_LEN), err);
    }
    return class;
}
