/* SPDX-License-Identifier: MIT */
/* sql_trouble: what makes a real server fail in the ways that port_cases.h names: other sessions that hold rows, KILL,
 * and a proxy between the store and the server. Needs sql_world_init() first. */
#ifndef IDEM_TESTS_SQL_TROUBLE_H
#define IDEM_TESTS_SQL_TROUBLE_H

#include "sql_world.h"
#include "idem/adapter/mysql_store.h"

/* Starts the proxy. The configuration of port_config() with its database behind it; static. */
const struct config *sql_trouble_init(void);
void sql_trouble_finish(void);

/* Those of sql_world with the trouble, for this store. */
const struct port_hooks *sql_trouble_hooks(struct mysql_store *store);

/* Runs in a session of its own, inside a transaction. */
void session_do(struct conn *conn, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
