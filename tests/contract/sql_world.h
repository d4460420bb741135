/* SPDX-License-Identifier: MIT */
/* sql_world: a real server for the contract test: the database's tables, the hooks of port_cases.h
 * in SQL, and second sessions. Server: IDEM_TEST_MYSQL=host:port:user:password:database; everything
 * in that database is dropped. */
#ifndef IDEM_TESTS_SQL_WORLD_H
#define IDEM_TESTS_SQL_WORLD_H

#include "idem/adapter/mysql_conn.h"
#include "port_cases.h"

/* false if IDEM_TEST_MYSQL is not set; aborts the program if the server cannot be used. Migrations
 * are read from the directory IDEM_TEST_MIGRATIONS. */
bool sql_world_init(void);
void sql_world_finish(void);

/* The first entry of port_config()->databases, pointed at the server. */
const struct database_config *sql_world_database(void);
/* Without those that make trouble (sql_trouble.h). */
const struct port_hooks *sql_world_hooks(void);

/* A second session, opened; for conn_destroy. */
struct conn *sql_session(void);
/* Runs and commits in the admin session; fails the test on an error. */
void sql_do(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Whether it could be run. */
bool sql_try(const char *text);
/* By root over the server's socket (IDEMD_TEST_DB_SOCKET): what no user of a database may do. */
bool sql_as_root(const char *text);
/* First cell of the first row, static until the next call; "" for NULL or none. */
const char *sql_value(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
