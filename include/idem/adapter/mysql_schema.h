/* SPDX-License-Identifier: MIT */
/* schema: what the live tables say about the rules: column types, unique indexes, rule numbers. Needs no more than
 * the grants of details section 4: information_schema shows what one may use. */
#ifndef IDEM_ADAPTER_MYSQL_SCHEMA_H
#define IDEM_ADAPTER_MYSQL_SCHEMA_H

#include "idem/adapter/mysql_conn.h"

enum severity { SEVERITY_ERROR, SEVERITY_WARNING, SEVERITY_INFO };

/* "error", "warning", "info". */
const char *severity_name(enum severity severity);

/* One thing that is wrong or worth knowing. path as in the file: topics.T.rules.R... ; texts are borrowed for the
 * call. */
typedef void schema_finding(void *context, enum severity severity, const char *code, const char *path,
                            const char *message);

/* Fills column types, transition.index and set_based of all rules of config->databases[database], and finds the rules
 * in idem_rule (rule.id); `registers` puts those in that are not there yet, otherwise nothing is written. Every fault
 * is told to `sink`; SEVERITY_ERROR means the rule must not run. The connection must be open. ERR_NONE even with
 * findings; other classes as the server says. */
enum err_class schema_read(struct conn *conn, struct config *config, uint32_t database, bool registers,
                           schema_finding *sink, void *context, struct err *err);

/* The cheap look again while running (details 1, "A unique index lost while running"): every index that proves rows
 * of the topic still stands, unique and visible. ERR_SCHEMA if one does not. The connection must be open and idle. */
enum err_class schema_indexes_stand(struct conn *conn, const struct topic *topic, struct err *err);

/* Tells a finding about a rule, path topics.T.rules.R. */
void schema_tell(schema_finding *sink, void *context, const struct rule *rule, enum severity severity,
                 const char *code, const char *format, ...) __attribute__((format(printf, 6, 7)));

#endif
