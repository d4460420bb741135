/* SPDX-License-Identifier: MIT */
/* ledger_self: what the files of the ledger share. */
#ifndef IDEM_MYSQL_LEDGER_SELF_H
#define IDEM_MYSQL_LEDGER_SELF_H

#include "idem/adapter/mysql_store.h"
#include "idem/core/limits.h"

struct mysql_ledger {
    struct ledger_port port;
    const struct config *config;
    struct conn *conn;
    struct buf sql;
    char owner[GROUP_MAX];
    size_t owner_len;
};

/* Sends ledger->sql. */
enum err_class ledger_run(struct mysql_ledger *ledger, const char *where, struct err *err);
int64_t ledger_number(const struct conn_cell *cell);
/* By cells[0] = topic, cells[1] = partition; NULL: none of them. */
struct ledger_partition *ledger_find(struct ledger_partition *partitions, uint32_t count,
                                     const struct conn_cell *cells);

enum err_class ledger_parked(void *self, struct ledger_partition *partitions, uint32_t count, uint32_t limit,
                             bool (*take)(void *context, const struct ledger_parked *row), void *context,
                             struct err *err);

enum err_class ledger_count(void *self, enum ledger_list list, uint64_t *after, uint32_t limit,
                            void (*each)(void *context, const struct ledger_kind *kind), void *context, bool *ret_end,
                            struct err *err);

#endif
