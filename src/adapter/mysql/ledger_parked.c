/* SPDX-License-Identifier: MIT */
/* ledger_parked: which parked records are due, for the keeper. Plain reads outside of a transaction: the worker locks a
 * row before it judges it. */
#include "ledger_self.h"

static void put_places(struct mysql_ledger *ledger, const struct ledger_partition *partitions, uint32_t count)
{
    struct buf *sql = &ledger->sql;
    for (uint32_t i = 0; i < count; i++) {
        bool first = i == 0 || !bytes_equal(partitions[i].topic, partitions[i - 1].topic);
        if (first) {
            buf_text(sql, i == 0 ? "(" : ") OR ");
            buf_text(sql, "topic=_binary");
            sql_string(sql, partitions[i].topic);
            buf_text(sql, " AND partition_id IN (");
        } else {
            buf_char(sql, ',');
        }
        buf_int(sql, partitions[i].partition);
    }
    buf_text(sql, "))");
}

static enum err_class count_rows(struct mysql_ledger *ledger, struct ledger_partition *partitions, uint32_t count,
                                 bool *ret_any, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    for (uint32_t i = 0; i < count; i++)
        partitions[i].parked = 0;
    buf_reset(&ledger->sql);
    buf_text(&ledger->sql, "SELECT topic,partition_id,COUNT(*) FROM idem_parked FORCE INDEX (ix_due) WHERE ");
    put_places(ledger, partitions, count);
    buf_text(&ledger->sql, " GROUP BY topic,partition_id");
    enum err_class class = ledger_run(ledger, "parked", err);
    while (!class && conn_next(ledger->conn, &cells, &columns)) {
        struct ledger_partition *partition = ledger_find(partitions, count, cells);
        if (!partition)
            continue;
        partition->parked = (uint64_t)ledger_number(&cells[2]);
        *ret_any = true;
    }
    conn_done(ledger->conn);
    return class;
}

static bool give_row(const struct conn_cell *cells, bool (*take)(void *context, const struct ledger_parked *row),
                     void *context)
{
    struct ledger_parked row = {
        .record = {.source = SOURCE_KAFKA, .topic = cells[0].text,
                   .partition = (int32_t)ledger_number(&cells[1]), .offset = ledger_number(&cells[4]),
                   .timestamp_ms = cells[5].is_null ? -1 : ledger_number(&cells[5]),
                   .has_key = !cells[10].is_null, .key = cells[10].text, .has_value = true,
                   .headers = cells[11].text, .value = cells[12].text},
        .row = {.id = (uint64_t)ledger_number(&cells[2]), .letter_id = (uint64_t)ledger_number(&cells[3]),
                .rule = cells[6].text, .biz_type = cells[7].text, .biz_no = cells[8].text, .key = cells[9].text}};
    return take(context, &row);
}

enum err_class ledger_parked(void *self, struct ledger_partition *partitions, uint32_t count, uint32_t limit,
                             bool (*take)(void *context, const struct ledger_parked *row), void *context,
                             struct err *err)
{
    struct mysql_ledger *ledger = self;
    const struct conn_cell *cells;
    uint32_t columns;
    bool any = false, more = true;
    enum err_class class = count_rows(ledger, partitions, count, &any, err);
    if (class || !any)
        return class;
    buf_reset(&ledger->sql);
    /* The due rows are found in the index alone: payloads are read for those that are taken. */
    buf_text(&ledger->sql,
             "SELECT p.topic,p.partition_id,p.id,p.dead_letter_id,p.kafka_offset,"
             "TIMESTAMPDIFF(MICROSECOND,'1970-01-01',p.record_ts) DIV 1000,p.rule,p.biz_type,p.biz_no,p.idem_key,"
             "p.record_key,p.headers,p.payload FROM (SELECT id FROM idem_parked FORCE INDEX (ix_due) WHERE ");
    put_places(ledger, partitions, count);
    buf_text(&ledger->sql, " AND next_attempt_at<=UTC_TIMESTAMP(3) ORDER BY next_attempt_at,id LIMIT ");
    buf_uint(&ledger->sql, limit);
    buf_text(&ledger->sql, ") d STRAIGHT_JOIN idem_parked p ON p.id=d.id ORDER BY p.next_attempt_at,p.id");
    class = ledger_run(ledger, "parked", err);
    while (!class && more && conn_next(ledger->conn, &cells, &columns))
        more = give_row(cells, take, context);
    conn_done(ledger->conn);
    return class;
}
