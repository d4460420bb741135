/* SPDX-License-Identifier: MIT */
/* check_self: what the files of the check share. */
#ifndef IDEM_MYSQL_CHECK_SELF_H
#define IDEM_MYSQL_CHECK_SELF_H

#include "idem/adapter/mysql_check.h"

enum { CHECK_SQL_MAX = 16384 };

struct checker {
    struct conn *conn;
    const struct config *config;
    uint32_t database;
    schema_finding *sink;
    void *context;
    struct err *err;
};

typedef enum err_class rule_check(struct checker *checker, const struct rule *rule);

/* Every rule of checker->database, until one fails. */
enum err_class check_each_rule(struct checker *checker, rule_check *check);

/* Each table of transitions and inserts, once. The names of statements are the server's to read. */
typedef enum err_class table_check(struct checker *checker, const struct rule *rule, struct bytes table);
enum err_class check_each_table(struct checker *checker, table_check *check);

/* Runs the statement; ERR_NONE also where it was refused for want of a right (*ret_denied). */
enum err_class check_run(struct checker *checker, struct bytes sql, const char *where, bool *ret_denied);

/* A finding about databases.NAME, or something in it. */
void check_tell(struct checker *checker, enum severity severity, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* code `grants`, error: path topics.T.rules.R.TABLE.VERB (rule) or databases.NAME.TABLE.VERB (rule NULL); the message
 * is the server's, in checker->err. */
void check_tell_grant(struct checker *checker, const struct rule *rule, struct bytes table, const char *verb);

/* The parts of check_all(), in this order; each within the transaction that it opens. */
enum err_class check_settings(struct checker *checker);
enum err_class check_tables(struct checker *checker);
enum err_class check_rules(struct checker *checker);
enum err_class check_grants(struct checker *checker);
enum err_class check_triggers(struct checker *checker);

#endif
