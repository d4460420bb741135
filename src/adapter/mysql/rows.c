/* SPDX-License-Identifier: MIT */
/* rows: the dedupe rows as the transaction meets them: claimed in one statement, read back where
 * they stood before, or looked at without a lock. Never changes a row that another attempt made. */
#include "store_self.h"

#include <stdlib.h>

void put_expires(struct buf *sql, const struct rule *rule)
{
    if (rule->ttl_s < 0) {
        buf_text(sql, "'9999-12-31 23:59:59.999'");
        return;
    }
    buf_text(sql, "UTC_TIMESTAMP(3)+INTERVAL ");
    buf_int(sql, rule->ttl_s);
    buf_text(sql, " SECOND");
}

void put_keys(struct buf *sql, struct item *const *items, uint32_t count)
{
    buf_text(sql, " WHERE bucket=0 AND biz_type=");
    sql_string(sql, items[0]->eval.rule->biz_type);
    buf_text(sql, " AND idem_key IN (");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            buf_char(sql, ',');
        sql_string(sql, items[i]->eval.key);
    }
    buf_char(sql, ')');
}

uint32_t same_type_run(struct item *const *items, uint32_t count)
{
    uint32_t run = 1;
    while (run < count &&
           bytes_equal(items[run]->eval.rule->biz_type, items[0]->eval.rule->biz_type))
        run++;
    return run;
}

/* ---- claim ----------------------------------------------------------------------------------------------------- */

static void put_claim_row(struct buf *sql, const struct item *item, struct bytes claim)
{
    const struct rule *rule = item->eval.rule;
    buf_text(sql, "(0,");
    sql_string(sql, rule->biz_type);
    buf_char(sql, ',');
    sql_string(sql, item->eval.key);
    buf_text(sql, ",_binary");
    sql_string(sql, item->eval.biz_no);
    buf_char(sql, ',');
    buf_uint(sql, rule->id);
    buf_char(sql, ',');
    sql_hex(sql, bytes_of(item->eval.params_hash, PARAMS_HASH_LEN));
    buf_char(sql, ',');
    sql_hex(sql, bytes_of(item->eval.identity_hash, IDENTITY_HASH_LEN));
    buf_char(sql, ',');
    buf_uint(sql, rule->fingerprint_version);
    buf_text(sql, ",1,'first',");
    sql_hex(sql, claim);
    buf_text(sql, ",'");
    buf_text(sql, source_name(item->record.source));
    buf_text(sql, "',");
    buf_int(sql, item->record.partition);
    buf_char(sql, ',');
    buf_int(sql, item->record.offset);
    if (item->eval.request_id.len) {
        buf_text(sql, ",_binary");
        sql_string(sql, item->eval.request_id);
        buf_char(sql, ',');
    } else {
        buf_text(sql, ",NULL,");
    }
    if (item->response.len)
        sql_string(sql, item->response);
    else
        buf_text(sql, "NULL");
    buf_char(sql, ',');
    put_expires(sql, rule);
    buf_char(sql, ')');
}

static const char known_columns[] =
    "SELECT idem_key,biz_no,rule_id,params_hash,identity_hash,fingerprint_version,status,outcome,attempts,"
    "source,partition_id,kafka_offset FROM idem_record FORCE INDEX (PRIMARY)";

/* Position of the key in a run of one biz_type, or count. */
static uint32_t find_key(struct item *const *items, uint32_t count, struct bytes key)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = bytes_compare(items[middle]->eval.key, key);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return count;
}

static enum source source_of(struct bytes name)
{
    static const enum source all[] = {SOURCE_KAFKA, SOURCE_HTTP, SOURCE_REPLAY, SOURCE_REDRIVE};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (bytes_equal(name, bytes_text(source_name(all[i]))))
            return all[i];
    return SOURCE_KAFKA;
}

/* The row into item->known; the topic follows when the result is read to its end. */
static bool take_known(struct item *item, const struct conn_cell *cells, struct arena *scratch)
{
    struct known_row *known = &item->known;
    if (cells[3].text.len != PARAMS_HASH_LEN || cells[4].text.len != IDENTITY_HASH_LEN ||
        !outcome_parse(cells[7].text, &known->outcome))
        return false;
    memcpy(known->params_hash, cells[3].text.at, PARAMS_HASH_LEN);
    memcpy(known->identity_hash, cells[4].text.at, IDENTITY_HASH_LEN);
    known->biz_no = arena_copy(scratch, cells[1].text);
    known->fingerprint_version = (uint16_t)cell_number(&cells[5]);
    known->status = (enum record_status)cell_number(&cells[6]);
    known->attempts = (uint32_t)cell_number(&cells[8]);
    known->source = source_of(cells[9].text);
    known->partition = (int32_t)cell_integer(&cells[10]);
    known->offset = cell_integer(&cells[11]);
    known->present = true;
    return true;
}

/* Reads the run's rows; *ret_found of them came back. */
static enum err_class take_rows(struct mysql_store *store, uint32_t from, uint32_t run,
                                struct arena *scratch, uint32_t *ret_found, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    while (conn_next(store->conn, &cells, &columns)) {
        uint32_t at = find_key(store->sorted + from, run, cells[0].text);
        if (at == run || !take_known(store->sorted[from + at], cells, scratch))
            return err_set(err, ERR_FATAL, 0, "claim", "idem_record gave a row that was not asked for");
        store->rule_ids[from + at] = (uint16_t)cell_number(&cells[2]);
        (*ret_found)++;
    }
    conn_done(store->conn);
    return ERR_NONE;
}

/* ---- the topic of a row's rule --------------------------------------------------------------------------------- */

static bool topic_of_rule(const struct mysql_store *store, uint16_t id, struct bytes *ret)
{
    const struct config *config = store->config;
    for (uint32_t i = 0; i < config->topic_count; i++)
        for (uint32_t k = 0; k < config->topics[i].rule_count; k++) {
            const struct rule *rule = &config->topics[i].rules[k];
            if (rule->id == id && &config->databases[rule->database] == store->database) {
                *ret = rule->topic;
                return true;
            }
        }
    for (uint32_t i = 0; i < RULES_CACHED; i++)
        if (store->topics[i].id == id) {
            *ret = bytes_of(store->topics[i].topic, store->topics[i].len);
            return true;
        }
    return false;
}

static enum err_class read_topic(struct mysql_store *store, uint16_t id, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    struct rule_topic *place = &store->topics[store->topic_next++ % RULES_CACHED];
    struct buf *sql = store_sql(store);
    buf_text(sql, "SELECT topic FROM idem_rule WHERE id=");
    buf_uint(sql, id);
    enum err_class class = store_run(store, "claim", err);
    if (class)
        return class;
    if (!conn_next(store->conn, &cells, &columns) || cells[0].text.len > TOPIC_MAX)
        return err_set(err, ERR_CONFIG, 0, "claim", "idem_rule has no row %u", (unsigned)id);
    place->id = id;
    place->len = (uint16_t)cells[0].text.len;
    memcpy(place->topic, cells[0].text.at, cells[0].text.len);
    conn_done(store->conn);
    return ERR_NONE;
}

/* The view must outlive the cache: copied where it is not the configuration's. */
static enum err_class set_topics(struct mysql_store *store, uint32_t count, struct arena *scratch,
                                 struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct item *item = store->sorted[i];
        uint16_t id = store->rule_ids[i];
        if (!item->known.present)
            continue;
        if (item->eval.rule->id == id) {
            item->known.topic = item->eval.rule->topic;
            continue;
        }
        if (!topic_of_rule(store, id, &item->known.topic)) {
            enum err_class class = read_topic(store, id, err);
            if (class)
                return class;
            (void)topic_of_rule(store, id, &item->known.topic);
        }
        item->known.topic = arena_copy(scratch, item->known.topic);
    }
    return scratch->exhausted ? err_set(err, ERR_TOO_LARGE, 0, "claim", "scratch memory is full")
                              : ERR_NONE;
}

/* ---- the port -------------------------------------------------------------------------------------------------- */

/* Rows that stood before: locked already by the insert, so this read sees what the lock holds. */
static enum err_class read_back(struct mysql_store *store, uint32_t count, struct bytes claim,
                                uint32_t inserted, struct arena *scratch, struct err *err)
{
    uint32_t found = 0;
    for (uint32_t from = 0, run; from < count; from += run) {
        struct buf *sql = store_sql(store);
        run = same_type_run(store->sorted + from, count - from);
        buf_text(sql, known_columns);
        put_keys(sql, store->sorted + from, run);
        buf_text(sql, " AND claim<>");
        sql_hex(sql, claim);
        buf_text(sql, " FOR UPDATE");
        enum err_class class = store_run(store, "claim", err);
        if (!class)
            class = take_rows(store, from, run, scratch, &found, err);
        if (class)
            return class;
    }
    for (uint32_t i = 0; i < count; i++)
        store->sorted[i]->claimed = !store->sorted[i]->known.present;
    /* K2 outside of settling: a row with this claim that this statement did not insert. */
    if (found + inserted != count)
        return err_set(err, ERR_FATAL, 0, "claim", "%u of %u rows inserted, but %u stood before",
                       (unsigned)inserted, (unsigned)count, (unsigned)found);
    return set_topics(store, count, scratch, err);
}

static enum err_class store_claim(void *self, struct item *const *items, uint32_t count,
                                  const uint8_t claim[CLAIM_LEN], struct arena *scratch,
                                  struct err *err)
{
    struct mysql_store *store = self;
    struct buf *sql = store_sql(store);
    if (count == 0)
        return ERR_NONE;
    enum err_class class = store_list(store, items, count, "claim", err);
    if (class)
        return class;
    items_sort_by_key(store->sorted, count);
    buf_text(sql, "INSERT INTO idem_record(bucket,biz_type,idem_key,biz_no,rule_id,params_hash,"
                  "identity_hash,fingerprint_version,status,outcome,claim,source,partition_id,"
                  "kafka_offset,request_id,response,expires_at) VALUES ");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            buf_char(sql, ',');
        put_claim_row(sql, store->sorted[i], bytes_of(claim, CLAIM_LEN));
        store->sorted[i]->known = (struct known_row){0};
    }
    buf_text(sql, " ON DUPLICATE KEY UPDATE idem_key=idem_record.idem_key");
    class = store_run(store, "claim", err);
    if (class)
        return class;
    uint64_t inserted = conn_affected(store->conn);
    if (inserted > count)
        return err_set(err, ERR_FATAL, 0, "claim", "more rows inserted than sent");
    if (inserted < count)
        return read_back(store, count, bytes_of(claim, CLAIM_LEN), (uint32_t)inserted, scratch, err);
    for (uint32_t i = 0; i < count; i++)
        store->sorted[i]->claimed = true;
    return ERR_NONE;
}

static enum err_class store_probe(void *self, struct item *const *items, uint32_t count,
                                  struct arena *scratch, struct err *err)
{
    struct mysql_store *store = self;
    uint32_t found = 0;
    enum err_class class = store_list(store, items, count, "probe", err);
    if (class || count == 0)
        return class;
    items_sort_by_key(store->sorted, count);
    for (uint32_t i = 0; i < count; i++)
        store->sorted[i]->known = (struct known_row){0};
    for (uint32_t from = 0, run; from < count; from += run) {
        struct buf *sql = store_sql(store);
        run = same_type_run(store->sorted + from, count - from);
        buf_text(sql, known_columns);
        put_keys(sql, store->sorted + from, run);
        buf_text(sql, " AND status=1");
        class = store_run(store, "probe", err);
        if (!class)
            class = take_rows(store, from, run, scratch, &found, err);
        if (class)
            return class;
    }
    return set_topics(store, count, scratch, err);
}

const struct store_row_ops store_row_table = {
    .probe = store_probe, .claim = store_claim, .update = store_update, .lock = store_lock,
    .look = store_look,
};
