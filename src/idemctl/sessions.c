/* SPDX-License-Identifier: MIT */
/* sessions: see sessions.h. All are opened before anything is printed: half an answer would look like a whole one. */
#include "sessions.h"

#include <stdlib.h>

int sessions_open(const struct ctl *ctl, struct sessions *ret)
{
    int code = CTL_GOOD;
    struct err err = {0};
    *ret = (struct sessions){.several = ctl->count > 1};
    ret->list = calloc(ctl->count, sizeof(struct conn *));
    if (!ret->list)
        return ctl_fail(CTL_INTERNAL, "out of memory");
    for (uint32_t i = 0; i < ctl->count && code == CTL_GOOD; i++) {
        struct conn *conn = ctl_connect(ctl, ctl->first + i, true, &code);
        if (!conn)
            break;
        ret->list[ret->count++] = conn;
        if (conn_begin(conn, &err))
            code = ctl_fail_err(&err);
    }
    if (code != CTL_GOOD)
        sessions_close(ret);
    return code;
}

void sessions_close(struct sessions *sessions)
{
    for (uint32_t i = 0; i < sessions->count; i++) {
        conn_done(sessions->list[i]);
        conn_rollback(sessions->list[i]);
        conn_destroy(sessions->list[i]);
    }
    free(sessions->list);
    *sessions = (struct sessions){0};
}

struct bytes sessions_name(const struct ctl *ctl, const struct sessions *sessions, uint32_t i)
{
    return sessions->several ? ctl->config->databases[ctl->first + i].name : (struct bytes){0};
}

int sessions_run(const struct sessions *sessions, uint32_t i, const struct buf *sql, const char *where)
{
    struct err err = {0};
    if (sql->overflow)
        return ctl_fail(CTL_USAGE, "the arguments are too long");
    return conn_run(sessions->list[i], buf_view(sql), where, &err) ? ctl_fail_err(&err) : CTL_GOOD;
}

int sessions_ambiguous(const struct ctl *ctl, const struct sessions *sessions, const bool *found, const char *what)
{
    char block[1024];
    struct buf names;
    buf_init(&names, block, sizeof block);
    for (uint32_t i = 0; i < sessions->count; i++) {
        if (!found[i])
            continue;
        buf_char(&names, ' ');
        buf_bytes(&names, sessions_name(ctl, sessions, i));
    }
    return ctl_fail(CTL_USAGE, "%s is in more than one database:%.*s; choose by --database", what, (int)names.len,
                    names.at);
}
