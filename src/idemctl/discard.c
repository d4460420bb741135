/* SPDX-License-Identifier: MIT */
/* discard: idemctl dead-letter discard. Somebody has decided that these records will never be applied; the letters
 * stay, with what he said. */
#include "redrive.h"

#include <stdlib.h>

enum { NOTE_MAX = 255, SQL_MAX = 1 << 20 };

static bool put_ids(const struct ctl *ctl, struct buf *sql)
{
    uint64_t id;
    buf_text(sql, " WHERE id IN (");
    for (int i = 0; i < ctl->argc; i++) {
        if (!ctl_number(ctl->argv[i], UINT64_MAX, &id))
            return false;
        if (i > 0)
            buf_char(sql, ',');
        buf_uint(sql, id);
    }
    buf_char(sql, ')');
    return ctl->argc > 0 && !sql->overflow;
}

/* How many of the letters there are, and how many of them are resolved; locked until the end. */
static int look(const struct ctl *ctl, struct conn *conn, struct buf *sql, uint32_t *ret_found, uint32_t *ret_resolved)
{
    struct err err = {0};
    const struct conn_cell *cells;
    uint32_t columns;
    buf_text(sql, "SELECT state FROM idem_dead_letter");
    put_ids(ctl, sql);
    buf_text(sql, " FOR UPDATE");
    if (conn_run(conn, buf_view(sql), "discard", &err))
        return ctl_fail_err(&err);
    while (conn_next(conn, &cells, &columns)) {
        ++*ret_found;
        *ret_resolved += bytes_equal(cells[0].text, BYTES_LIT("resolved"));
    }
    conn_done(conn);
    return CTL_GOOD;
}

static int write_note(const struct ctl *ctl, struct conn *conn, struct buf *sql, const char *note)
{
    struct err err = {0};
    buf_reset(sql);
    buf_text(sql, "UPDATE idem_dead_letter SET state='discarded',updated_at=UTC_TIMESTAMP(6),note=_binary");
    sql_string(sql, bytes_text(note));
    put_ids(ctl, sql);
    if (conn_run(conn, buf_view(sql), "discard", &err) || conn_commit(conn, &err))
        return ctl_fail_err(&err);
    return CTL_GOOD;
}

static int discard_all(const struct ctl *ctl, struct conn *conn, struct buf *sql, const char *note, bool force)
{
    struct err err = {0};
    uint32_t found = 0, resolved = 0;
    if (conn_begin(conn, &err))
        return ctl_fail_err(&err);
    int code = look(ctl, conn, sql, &found, &resolved);
    if (code == CTL_GOOD && found != (uint32_t)ctl->argc)
        code = ctl_fail(CTL_NOT_FOUND, "%u of these %d letters are there: nothing was discarded", found, ctl->argc);
    else if (code == CTL_GOOD && resolved > 0 && !force)
        code = ctl_fail(CTL_REFUSED, "%u of them are resolved: nothing was discarded (--force does it)", resolved);
    if (code == CTL_GOOD)
        code = write_note(ctl, conn, sql, note);
    conn_rollback(conn);
    if (code == CTL_GOOD && ctl->json)
        fprintf(ctl->out, "{\"discarded\":%u}\n", found);
    else if (code == CTL_GOOD)
        fprintf(ctl->out, "%u discarded\n", found);
    return code;
}

int discard(struct ctl *ctl)
{
    struct buf sql;
    int code = CTL_GOOD;
    bool yes = ctl_flag(ctl, "--yes"), force = ctl_flag(ctl, "--force");
    const char *note = ctl_option(ctl, "--note");
    if (!note || !*note || strlen(note) > NOTE_MAX || !ctl_arguments(ctl, ctl->argc))
        return CTL_USAGE;
    if (ctl->count > 1)
        return ctl_fail(CTL_USAGE, "each database numbers its own letters: choose one by --database");
    void *block = malloc(SQL_MAX);
    buf_init(&sql, block, block ? SQL_MAX : 0);
    if (!put_ids(ctl, &sql))
        code = CTL_USAGE;
    else if (!yes)
        code = ctl_fail(CTL_REFUSED, "they will not be applied any more: say --yes");
    buf_reset(&sql);
    struct conn *conn = code == CTL_GOOD ? ctl_connect(ctl, ctl->first, false, &code) : NULL;
    if (conn)
        code = discard_all(ctl, conn, &sql, note, force);
    conn_destroy(conn);
    free(block);
    return code;
}
