/* SPDX-License-Identifier: MIT */
/* check: what an operator should know before a rule runs, beyond what schema_read() needs: plans, server settings,
 * states that no list names, grants. Reads only; findings go to the sink of schema.h. */
#ifndef IDEM_ADAPTER_MYSQL_CHECK_H
#define IDEM_ADAPTER_MYSQL_CHECK_H

#include "idem/adapter/mysql_schema.h"

/* EXPLAIN of each transition's look-up by its unique index: anything but one row an entry is an error (design 3 step
 * 6). After schema_read(). */
enum err_class check_plans(struct conn *conn, const struct config *config, uint32_t database, schema_finding *sink,
                           void *context, struct err *err);

/* Durability, sql_mode, grants, states in no list, time to live. After schema_read(). */
enum err_class check_all(struct conn *conn, const struct config *config, uint32_t database, schema_finding *sink,
                         void *context, struct err *err);

#endif
