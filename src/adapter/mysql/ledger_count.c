/* SPDX-License-Identifier: MIT */
/* ledger_count: how many dead letters are open and how many records are parked, in parts, for the keeper. Plain reads;
 * a part touches few pages, since its index has the rows in the order of the table itself. */
#include "ledger_self.h"

static const struct {
    const char *head, *tail;         /* around the id */
} queries[LEDGER_LIST_COUNT] = {
    [LEDGER_LETTERS] = {"SELECT topic,outcome,COUNT(*),MAX(id),0 FROM (SELECT id,topic,outcome FROM idem_dead_letter "
                        "FORCE INDEX (ix_state) WHERE state='open' AND id>",
                        ") AS part GROUP BY topic,outcome"},
    [LEDGER_PARKED] = {"SELECT topic,reason,COUNT(*),MAX(id),"
                       "GREATEST(0,TIMESTAMPDIFF(SECOND,MIN(created_at),UTC_TIMESTAMP(6))) FROM "
                       "(SELECT id,topic,reason,created_at FROM idem_parked FORCE INDEX (PRIMARY) WHERE id>",
                       ") AS part GROUP BY topic,reason"},
};

static enum err_class read_part(struct mysql_ledger *ledger, uint64_t *after, uint64_t *ret_seen,
                                void (*each)(void *context, const struct ledger_kind *kind), void *context,
                                struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    uint64_t last = *after;
    enum err_class class = ledger_run(ledger, "count", err);
    while (!class && conn_next(ledger->conn, &cells, &columns)) {
        uint64_t id = (uint64_t)ledger_number(&cells[3]);
        struct ledger_kind kind = {cells[0].text, cells[1].text, (uint64_t)ledger_number(&cells[2]),
                                   (uint64_t)ledger_number(&cells[4])};
        each(context, &kind);
        *ret_seen += kind.count;
        if (id > last)
            last = id;
    }
    conn_done(ledger->conn);
    if (!class)
        *after = last;
    return class;
}

enum err_class ledger_count(void *self, enum ledger_list list, uint64_t *after, uint32_t limit,
                            void (*each)(void *context, const struct ledger_kind *kind), void *context, bool *ret_end,
                            struct err *err)
{
    struct mysql_ledger *ledger = self;
    struct buf *sql = &ledger->sql;
    uint64_t seen = 0;
    buf_reset(sql);
    buf_text(sql, queries[list].head);
    buf_uint(sql, *after);
    buf_text(sql, " ORDER BY id LIMIT ");
    buf_uint(sql, limit);
    buf_text(sql, queries[list].tail);
    enum err_class class = conn_begin(ledger->conn, err);
    if (class)
        return class;
    class = read_part(ledger, after, &seen, each, context, err);
    conn_rollback(ledger->conn);
    *ret_end = seen < limit;
    return class;
}
