/* SPDX-License-Identifier: MIT */
/* sessions: one session with each database that a command asks: that of --database, or all of the file. For nouns
 * whose rows may lie in any of them. */
#ifndef IDEMCTL_SESSIONS_H
#define IDEMCTL_SESSIONS_H

#include "command.h"

struct sessions {
    struct conn **list;          /* count of them, each within a transaction that is never committed */
    uint32_t count;
    bool several;                /* count > 1: what is printed says which database it came from */
};

/* Opens all of ctl, for reading: a replica will do. On CTL_GOOD close with sessions_close; otherwise the code says why
 * (told) and nothing is left open. */
int sessions_open(const struct ctl *ctl, struct sessions *ret);
void sessions_close(struct sessions *sessions);

/* The name to print beside rows of session i; empty where there is only one. */
struct bytes sessions_name(const struct ctl *ctl, const struct sessions *sessions, uint32_t i);

/* Runs the statement on session i; on CTL_GOOD read the rows by conn_next, end with conn_done. Otherwise told. */
int sessions_run(const struct sessions *sessions, uint32_t i, const struct buf *sql, const char *where);

/* Refuses what was found in more than one database: which one is the user's to say. Returns CTL_USAGE. found: count
 * flags. */
int sessions_ambiguous(const struct ctl *ctl, const struct sessions *sessions, const bool *found, const char *what);

#endif
