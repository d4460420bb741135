/* SPDX-License-Identifier: MIT */
/* statement: a rule's own UPDATE, INSERT or DELETE, cut at its :names. */
#include "rule_bind.h"

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

struct statement_target {
    struct bytes sql;
    const struct yaml_node *params;
    uint64_t affected;
    int otherwise;
};

static const struct word otherwise_words[] = {{"state_conflict", OUTCOME_STATE_CONFLICT},
                                              {"rejected", OUTCOME_REJECTED},
                                              {"ignored", OUTCOME_IGNORED},
                                              {NULL, 0}};

static const struct option statement_options[] = {
    {.name = "sql", .kind = OPTION_TEXT, .offset = offsetof(struct statement_target, sql), .required = true,
     .nonempty = true},
    {.name = "params", .kind = OPTION_NODE, .offset = offsetof(struct statement_target, params)},
    {.name = "affected", .kind = OPTION_NUMBER, .width = 8, .offset = offsetof(struct statement_target, affected),
     .min = 0, .max = 1000000, .fallback = "1"},
    {.name = "else", .kind = OPTION_WORD, .offset = offsetof(struct statement_target, otherwise),
     .words = otherwise_words, .fallback = "state_conflict"},
};

static bool is_name(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Index just past a quoted text, quoted name or comment that starts at `at`; `at` itself if none does. */
static size_t skip_quoted(struct bytes sql, size_t at)
{
    uint8_t c = sql.at[at];
    if (c == '\'' || c == '"' || c == '`') {
        for (size_t i = at + 1; i < sql.len; i++) {
            if (sql.at[i] == '\\' && c != '`')
                i++;
            else if (sql.at[i] == c)
                return i + 1;
        }
        return sql.len;
    }
    if (c == '/' && at + 1 < sql.len && sql.at[at + 1] == '*') {
        for (size_t i = at + 2; i + 1 < sql.len; i++)
            if (sql.at[i] == '*' && sql.at[i + 1] == '/')
                return i + 2;
        return sql.len;
    }
    if (c == '#' || (c == '-' && at + 1 < sql.len && sql.at[at + 1] == '-')) {
        while (at < sql.len && sql.at[at] != '\n')
            at++;
        return at;
    }
    return at;
}

/* The next :name from *at on: its place and its name. */
static bool next_param(struct bytes sql, size_t *at, size_t *ret_from, struct bytes *ret_name)
{
    while (*at < sql.len) {
        size_t past = skip_quoted(sql, *at);
        if (past > *at) {
            *at = past;
        } else if (sql.at[*at] == ':' && *at + 1 < sql.len && is_name(sql.at[*at + 1])) {
            size_t to = *at + 1;
            while (to < sql.len && is_name(sql.at[to]))
                to++;
            *ret_from = *at;
            *ret_name = bytes_of(sql.at + *at + 1, to - *at - 1);
            *at = to;
            return true;
        } else {
            (*at)++;
        }
    }
    return false;
}

static struct bytes next_word(struct bytes sql, size_t *at)
{
    while (*at < sql.len && (sql.at[*at] <= ' '))
        (*at)++;
    size_t from = *at;
    while (*at < sql.len && (is_name(sql.at[*at]) || sql.at[*at] == '.' || sql.at[*at] == '`' || sql.at[*at] == '$'))
        (*at)++;
    return bytes_of(sql.at + from, *at - from);
}

struct bytes statement_table(struct bytes sql)
{
    size_t at = 0;
    struct bytes verb = next_word(sql, &at);
    struct bytes word = next_word(sql, &at);
    if (bytes_equal_nocase(verb, BYTES_LIT("UPDATE")))
        return word;
    return next_word(sql, &at);          /* INTO, FROM */
}

static bool verb_check(struct binder *b, const struct yaml_node *node, struct bytes sql)
{
    size_t at = 0;
    struct bytes verb = next_word(sql, &at), into = next_word(sql, &at);
    bool good = bytes_equal_nocase(verb, BYTES_LIT("UPDATE")) ||
                (bytes_equal_nocase(verb, BYTES_LIT("INSERT")) && bytes_equal_nocase(into, BYTES_LIT("INTO"))) ||
                (bytes_equal_nocase(verb, BYTES_LIT("DELETE")) && bytes_equal_nocase(into, BYTES_LIT("FROM")));
    if (!good)
        return mistake(b, node, "sql: must be one UPDATE, INSERT INTO or DELETE FROM");
    for (size_t i = 0; i < sql.len;) {
        size_t past = skip_quoted(sql, i);
        if (past == i && sql.at[i] == ';')
            return mistake(b, node, "sql: must be one statement, without ;");
        i = past > i ? past : i + 1;
    }
    return true;
}

struct param_list {
    struct bytes names[STATEMENT_PARAMS_MAX];
    uint16_t exprs[STATEMENT_PARAMS_MAX];
    bool used[STATEMENT_PARAMS_MAX];
    uint32_t count;
};

static void params_bind(struct rule_binder *rb, const struct yaml_node *node, struct param_list *ret)
{
    struct bytes name;
    const struct yaml_node *value;
    uint32_t index = 0;
    if (!is_mapping(rb->b, node))
        return;
    while (map_next(rb->b, node, &index, &name, &value)) {
        size_t mark = path_enter_bytes(rb->b, name);
        if (ret->count == STATEMENT_PARAMS_MAX) {
            mistake(rb->b, value, "more than %d parameters", STATEMENT_PARAMS_MAX);
        } else {
            ret->names[ret->count] = name;
            ret->exprs[ret->count++] = expr_bind(rb, value, PLACE_TEXT);
        }
        path_leave(rb->b, mark);
    }
}

static uint16_t param_use(struct rule_binder *rb, const struct yaml_node *node, struct param_list *params,
                          struct bytes name)
{
    for (uint32_t i = 0; i < params->count; i++)
        if (bytes_equal(params->names[i], name)) {
            params->used[i] = true;
            return params->exprs[i];
        }
    mistake(rb->b, node, "sql: :%s is not in params", quote(name).text);
    return NO_EXPR;
}

static void sql_cut(struct rule_binder *rb, const struct yaml_node *node, struct param_list *params,
                    struct statement *ret)
{
    struct bytes name;
    size_t at = 0, from = 0, piece = 0;
    struct bytes *text = binder_array(rb->b, STATEMENT_PARAMS_MAX + 1, sizeof *text);
    uint16_t *exprs = binder_array(rb->b, STATEMENT_PARAMS_MAX, sizeof *exprs);
    uint32_t count = 0;
    while (text && exprs && next_param(ret->sql, &at, &from, &name)) {
        if (count == STATEMENT_PARAMS_MAX) {
            mistake(rb->b, node, "sql: more than %d parameters", STATEMENT_PARAMS_MAX);
            return;
        }
        text[count] = bytes_of(ret->sql.at + piece, from - piece);
        exprs[count++] = param_use(rb, node, params, name);
        piece = at;
    }
    if (!text || !exprs)
        return;
    text[count] = bytes_of(ret->sql.at + piece, ret->sql.len - piece);
    ret->text = text;
    ret->params = exprs;
    ret->param_count = count;
    for (uint32_t i = 0; i < params->count; i++)
        if (!params->used[i])
            mistake(rb->b, node, "params: %s is not used in sql", quote(params->names[i]).text);
}

static void statement_bind(struct rule_binder *rb, const struct yaml_node *node, void *made)
{
    struct statement *ret = made;
    struct statement_target target = {0};
    struct param_list params = {0};
    section_bind(rb->b, node, statement_options, COUNT_OF(statement_options), &target);
    ret->sql = target.sql;
    ret->affected = target.affected;
    ret->otherwise = (enum outcome)target.otherwise;
    if (target.params) {
        size_t mark = path_enter(rb->b, "params");
        params_bind(rb, target.params, &params);
        path_leave(rb->b, mark);
    }
    if (target.sql.len && verb_check(rb->b, node, target.sql))
        sql_cut(rb, node, &params, ret);
}

void statements_bind(struct rule_binder *rb, const struct yaml_node *node)
{
    struct rule *rule = rb->rule;
    rule->statements = actions_bind(rb, node, sizeof *rule->statements, statement_bind, &rule->statement_count);
}
