/* SPDX-License-Identifier: MIT */
/* migrate: bringing idemd's own tables up to date, and checking that they are. Forward only. */
#ifndef IDEM_ADAPTER_MYSQL_MIGRATE_H
#define IDEM_ADAPTER_MYSQL_MIGRATE_H

#include "idem/adapter/mysql_conn.h"

enum migrate_state { MIGRATE_DONE, MIGRATE_PENDING, MIGRATE_APPLIED, MIGRATE_RESUMED };

/* Told once a migration: it stood already, it would be run (dry_run), it was run, a half-done one was run again. */
typedef void migrate_report(void *context, uint32_t version, const char *name, enum migrate_state state);

/* The highest version that this program knows; never 0. */
uint32_t migrate_latest(void);

/* Applies what is missing, up to version `to` (0 = all), under a lock that keeps a second migrator out. A migration
 * that was begun and not finished (DDL is not transactional) is run again: tables that it had made already are taken
 * as they are. The connection must be open. ERR_CONFIG: a stored checksum differs, or a refusal by the server;
 * ERR_LOCKED: another migrator. */
enum err_class migrate_run(struct conn *conn, bool dry_run, uint32_t to, migrate_report *report, void *context,
                           struct err *err);

/* At start: every version this program knows is there, done, with an equal checksum. *ret_newer: the database has more.
 * ERR_CONFIG otherwise. */
enum err_class migrate_verify(struct conn *conn, bool *ret_newer, struct err *err);

#endif
