/* SPDX-License-Identifier: MIT */
/* checker: what the parts of the check share: the rules and tables to look at, and how a finding is told. */
#include "check_self.h"

#include <stdarg.h>
#include <stdio.h>

enum err_class check_each_rule(struct checker *checker, rule_check *check)
{
    enum err_class class = ERR_NONE;
    for (uint32_t i = 0; i < checker->config->topic_count && class == ERR_NONE; i++) {
        const struct topic *topic = &checker->config->topics[i];
        for (uint32_t k = 0; topic->database == checker->database && k < topic->rule_count && class == ERR_NONE; k++)
            class = check(checker, &topic->rules[k]);
    }
    return class;
}

/* Table number `at` of the rule; empty beyond the last. */
static struct bytes table_at(const struct rule *rule, uint32_t at)
{
    if (at < rule->transition_count)
        return rule->transitions[at].table;
    at -= rule->transition_count;
    return at < rule->insert_count ? rule->inserts[at].table : (struct bytes){0};
}

/* Whether a rule before, or this rule before `at`, has the table. */
static bool seen_before(const struct checker *checker, const struct rule *rule, uint32_t at)
{
    struct bytes table = table_at(rule, at);
    for (uint32_t i = 0; i < checker->config->topic_count; i++) {
        const struct topic *topic = &checker->config->topics[i];
        for (uint32_t k = 0; topic->database == checker->database && k < topic->rule_count; k++) {
            const struct rule *other = &topic->rules[k];
            uint32_t end = other == rule ? at : other->transition_count + other->insert_count;
            for (uint32_t n = 0; n < end; n++)
                if (bytes_equal(table_at(other, n), table))
                    return true;
            if (other == rule)
                return false;
        }
    }
    return false;
}

enum err_class check_each_table(struct checker *checker, table_check *check)
{
    enum err_class class = ERR_NONE;
    for (uint32_t i = 0; i < checker->config->topic_count && class == ERR_NONE; i++) {
        const struct topic *topic = &checker->config->topics[i];
        for (uint32_t k = 0; topic->database == checker->database && k < topic->rule_count; k++)
            for (uint32_t n = 0; table_at(&topic->rules[k], n).len && class == ERR_NONE; n++)
                if (!seen_before(checker, &topic->rules[k], n))
                    class = check(checker, &topic->rules[k], table_at(&topic->rules[k], n));
    }
    return class;
}

/* On a database, a table, a column, a routine, of the server. */
static bool is_denial(int number)
{
    return number == 1044 || number == 1142 || number == 1143 || number == 1370 || number == 1227;
}

enum err_class check_run(struct checker *checker, struct bytes sql, const char *where, bool *ret_denied)
{
    enum err_class class = conn_run(checker->conn, sql, where, checker->err);
    *ret_denied = class != ERR_NONE && is_denial(checker->err->number);
    return *ret_denied ? ERR_NONE : class;
}

void check_tell(struct checker *checker, enum severity severity, const char *code, const char *format, ...)
{
    char path[160], message[512];
    struct bytes name = checker->config->databases[checker->database].name;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    snprintf(path, sizeof path, "databases.%.*s", (int)name.len, (const char *)name.at);
    checker->sink(checker->context, severity, code, path, message);
}

void check_tell_grant(struct checker *checker, const struct rule *rule, struct bytes table, const char *verb)
{
    char path[600];
    struct bytes name = checker->config->databases[checker->database].name;
    if (rule)
        snprintf(path, sizeof path, "topics.%.*s.rules.%.*s.%.*s.%s", (int)rule->topic.len,
                 (const char *)rule->topic.at, (int)rule->name.len, (const char *)rule->name.at, (int)table.len,
                 (const char *)table.at, verb);
    else
        snprintf(path, sizeof path, "databases.%.*s.%.*s.%s", (int)name.len, (const char *)name.at, (int)table.len,
                 (const char *)table.at, verb);
    checker->sink(checker->context, SEVERITY_ERROR, "grants", path, checker->err->text);
}
