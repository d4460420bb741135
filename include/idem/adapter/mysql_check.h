/* SPDX-License-Identifier: MIT */
/* check: what an operator should know before a rule runs, beyond what schema_read() needs: plans, server settings,
 * tables, states that no list names, grants. Changes nothing: statements that need a right touch no row and are rolled
 * back. Findings go to the sink of schema.h. */
#ifndef IDEM_ADAPTER_MYSQL_CHECK_H
#define IDEM_ADAPTER_MYSQL_CHECK_H

#include "idem/adapter/mysql_schema.h"

/* EXPLAIN of each transition's UPDATE, for one record and for several, as the store writes it: anything but one row an
 * entry through its unique index is an error (design 3 step 6). After schema_read(). */
enum err_class check_plans(struct conn *conn, const struct config *config, uint32_t database, schema_finding *sink,
                           void *context, struct err *err);

/* The rights that the daemon needs on its own tables (details 4). Needs nothing but an open session: missing tables
 * are nobody's finding here. A server that takes no writes is a finding (`durability`), and nothing else is tried. */
enum err_class check_own_grants(struct conn *conn, const struct config *config, uint32_t database,
                                schema_finding *sink, void *context, struct err *err);

/* Durability, sql_mode, isolation, time zone, identity, states in no list, parking, rights on the shop's tables,
 * triggers. After schema_read(). */
enum err_class check_all(struct conn *conn, const struct config *config, uint32_t database, schema_finding *sink,
                         void *context, struct err *err);

/* A transition that a record passes once, an insert that the shop's own unique index refuses twice, or a statement with
 * `else: ignored`: then what comes after the dedupe row is gone is still told from new. */
bool check_is_guarded(const struct rule *rule);

#endif
