/* SPDX-License-Identifier: MIT */
/* store: the store and ledger ports over one MySQL or MariaDB session each. Owned by the thread
 * that uses them. */
#ifndef IDEM_ADAPTER_MYSQL_STORE_H
#define IDEM_ADAPTER_MYSQL_STORE_H

#include "idem/adapter/mysql_conn.h"
#include "idem/port/ledger.h"
#include "idem/port/store.h"

struct mysql_store;

/* A store for rules of `database`, which is an entry of config->databases. Both are borrowed until
 * it is destroyed. NULL if out of memory. Connects only by the port's open(). */
struct mysql_store *mysql_store_create(const struct database_config *database,
                                       const struct config *config);
void mysql_store_destroy(struct mysql_store *store);     /* NULL is fine */
const struct store_port *mysql_store_port(struct mysql_store *store);

/* Its session, for conn_trace_set and conn_options_set; borrowed until the store is destroyed. */
struct conn *mysql_store_conn(struct mysql_store *store);

struct mysql_ledger;

/* `owner` (NUL-terminated, cut at 128 bytes) goes into idem_partition.owner; the rest as above. */
struct mysql_ledger *mysql_ledger_create(const struct database_config *database,
                                         const struct config *config, const char *owner);
void mysql_ledger_destroy(struct mysql_ledger *ledger);  /* NULL is fine */
const struct ledger_port *mysql_ledger_port(struct mysql_ledger *ledger);
struct conn *mysql_ledger_conn(struct mysql_ledger *ledger);

#endif
