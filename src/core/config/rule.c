/* SPDX-License-Identifier: MIT */
/* rule: one rule as a whole: names, key, identity, fingerprint, and what its parts owe each other. */
#include "rule_bind.h"

#include "idem/core/key.h"

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

struct rule_target {
    struct bytes name, biz_type, action, ttl;
    const struct yaml_node *when, *key, *scope, *biz_no, *identity, *fields, *fingerprint, *transition, *transitions,
        *insert, *statements, *events, *on, *respond, *park;
};

#define NODE(field) {.name = #field, .kind = OPTION_NODE, .offset = offsetof(struct rule_target, field)}
#define TEXT(field) {.name = #field, .kind = OPTION_TEXT, .offset = offsetof(struct rule_target, field), \
                     .required = true, .nonempty = true}

static const struct option rule_options[] = {
    TEXT(name), TEXT(biz_type), TEXT(action), TEXT(ttl),
    {.name = "key", .kind = OPTION_NODE, .offset = offsetof(struct rule_target, key), .required = true},
    {.name = "biz_no", .kind = OPTION_NODE, .offset = offsetof(struct rule_target, biz_no), .required = true},
    {.name = "fingerprint", .kind = OPTION_NODE, .offset = offsetof(struct rule_target, fingerprint),
     .required = true},
    NODE(when), NODE(scope), NODE(identity), NODE(fields), NODE(transition), NODE(transitions), NODE(insert),
    NODE(statements), NODE(events), NODE(on), NODE(respond), NODE(park),
    {.name = "key_time", .kind = OPTION_LATER},
};

struct fingerprint_target {
    uint16_t version;
    const struct yaml_node *fields;
};

static const struct option fingerprint_options[] = {
    {.name = "version", .kind = OPTION_NUMBER, .width = 2, .offset = offsetof(struct fingerprint_target, version),
     .min = 1, .max = 65535, .required = true},
    {.name = "fields", .kind = OPTION_NODE, .offset = offsetof(struct fingerprint_target, fields),
     .required = true},
};

static void key_bind(struct rule_binder *rb, const struct yaml_node *node)
{
    uint32_t count = 0;
    size_t mark = path_enter(rb->b, "key");
    const struct yaml_node *const *items = list_items(rb->b, &node, ACTIONS_MAX, &count);
    uint16_t *keys = items ? binder_array(rb->b, count, sizeof *keys) : NULL;
    if (items && count == 0)
        mistake(rb->b, node, "must name at least one source");
    for (uint32_t i = 0; keys && i < count; i++) {
        keys[i] = expr_bind(rb, items[i], PLACE_NO_NOW | PLACE_NO_LITERAL);
        if (keys[i] != NO_EXPR && rb->exprs[keys[i]].source == EXPR_META && rb->exprs[keys[i]].meta != META_KEY)
            mistake(rb->b, items[i], "only `meta key` of the record's facts names a business action");
    }
    rb->rule->keys = keys;
    rb->rule->key_count = keys ? count : 0;
    path_leave(rb->b, mark);
}

static void sort_columns(struct column_value *list, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t k = i; k > 0 && bytes_compare(list[k - 1].column, list[k].column) > 0; k--) {
            struct column_value swapped = list[k];
            list[k] = list[k - 1];
            list[k - 1] = swapped;
        }
}

static void identity_bind(struct rule_binder *rb, const struct yaml_node *node)
{
    struct rule *rule = rb->rule;
    const struct column_value *list = NULL;
    uint32_t count = 0;
    size_t mark = path_enter(rb->b, "identity");
    if (node->kind == YAML_SCALAR && bytes_equal(node->text, BYTES_LIT("none"))) {
        rule->identity_none = true;
    } else {
        columns_bind(rb, node, IDENTITY_MAX, PLACE_ROW, &list, &count);
        if (count == 0)
            mistake(rb->b, node, "must name at least one column, or be none");
        struct column_value *sorted = binder_array(rb->b, count, sizeof *sorted);
        for (uint32_t i = 0; sorted && i < count; i++)
            sorted[i] = list[i];
        if (sorted)
            sort_columns(sorted, count);
        rule->identity = sorted;
        rule->identity_count = sorted ? count : 0;
    }
    path_leave(rb->b, mark);
}

static void fingerprint_bind(struct rule_binder *rb, const struct yaml_node *node)
{
    struct fingerprint_target target = {0};
    uint32_t count = 0;
    size_t mark = path_enter(rb->b, "fingerprint");
    section_bind(rb->b, node, fingerprint_options, COUNT_OF(fingerprint_options), &target);
    rb->rule->fingerprint_version = target.version;
    if (target.fields) {
        size_t inner = path_enter(rb->b, "fields");
        const struct yaml_node *const *items = list_items(rb->b, &target.fields, EXPRS_MAX, &count);
        uint16_t *list = items ? binder_array(rb->b, count, sizeof *list) : NULL;
        if (items && count == 0)
            mistake(rb->b, target.fields, "must not be empty");
        for (uint32_t i = 0; list && i < count; i++)
            list[i] = expr_bind(rb, items[i], PLACE_NO_NOW | PLACE_NO_LITERAL);
        rb->rule->fingerprint = list;
        rb->rule->fingerprint_count = list ? count : 0;
        path_leave(rb->b, inner);
    }
    path_leave(rb->b, mark);
}

static void ttl_bind(struct rule_binder *rb, const struct yaml_node *node, struct bytes ttl)
{
    uint64_t ms;
    size_t mark = path_enter(rb->b, "ttl");
    const struct yaml_node *at = map_find(node, "ttl");
    if (bytes_equal(ttl, BYTES_LIT("forever")))
        rb->rule->ttl_s = -1;
    else if (ttl.len && (!duration_parse(ttl, &ms) || ms < 1000 || ms > 3650ull * 86400000))
        mistake(rb->b, at, "\"%s\" is not a time to live (1s..3650d, or forever)", quote(ttl).text);
    else if (ttl.len)
        rb->rule->ttl_s = (int64_t)(ms / 1000);
    path_leave(rb->b, mark);
}

/* ---- what parts owe each other ----------------------------------------------------------------------------------- */

static bool has_column(const struct column_value *list, uint32_t count, struct bytes column)
{
    for (uint32_t i = 0; i < count; i++)
        if (bytes_equal(list[i].column, column))
            return true;
    return false;
}

/* The value itself, or a field that is read from the same place. */
static bool in_fingerprint(const struct rule_binder *rb, uint16_t expr)
{
    for (uint32_t i = 0; i < rb->rule->fingerprint_count; i++) {
        uint16_t used = rb->rule->fingerprint[i];
        if (used == expr)
            return true;
        if (used != NO_EXPR && rb->exprs[used].source == EXPR_FIELD &&
            rb->fields[rb->exprs[used].field].at == expr)
            return true;
    }
    return false;
}

static void identity_check(struct rule_binder *rb, const struct yaml_node *node)
{
    const struct rule *rule = rb->rule;
    const struct yaml_node *at = map_find(node, "identity");
    size_t mark = path_enter(rb->b, "identity");
    if (!at && rule->transition_count > 0)
        mistake(rb->b, node, "is required: it tells a retry from a second payment (or say identity: none)");
    for (uint32_t i = 0; i < rule->identity_count; i++) {
        const struct column_value *entry = &rule->identity[i];
        if (rule->transition_count > 0 &&
            !has_column(rule->transitions[0].where, rule->transitions[0].where_count, entry->column) &&
            !has_column(rule->transitions[0].set, rule->transitions[0].set_count, entry->column))
            mistake(rb->b, at, "column %s is in neither where nor set of the first transition: it would always "
                    "be NULL", quote(entry->column).text);
        if (entry->expr != NO_EXPR && !in_fingerprint(rb, entry->expr))
            mistake(rb->b, at, "%s must stand in fingerprint.fields too", quote(rb->exprs[entry->expr].text).text);
    }
    path_leave(rb->b, mark);
}

static void word_check(struct rule_binder *rb, const struct yaml_node *node, const char *name, struct bytes word)
{
    size_t mark = path_enter(rb->b, name);
    if (word.len && !key_part_is_valid(word))
        mistake(rb->b, map_find(node, name), "\"%s\" must match [A-Za-z0-9_.-]{1,32}", quote(word).text);
    path_leave(rb->b, mark);
}

typedef void part_bind(struct rule_binder *rb, const struct yaml_node *node);

static void part(struct rule_binder *rb, const char *name, const struct yaml_node *node, part_bind *bind)
{
    if (!node)
        return;
    size_t mark = path_enter(rb->b, name);
    bind(rb, node);
    path_leave(rb->b, mark);
}

/* Fields first: every later value may name one. */
static void parts_bind(struct rule_binder *rb, const struct rule_target *target)
{
    struct rule *rule = rb->rule;
    part(rb, "fields", target->fields, fields_bind);
    part(rb, "when", target->when, when_bind);
    part(rb, "insert", target->insert, inserts_bind);
    part(rb, "statements", target->statements, statements_bind);
    part(rb, "on", target->on, on_bind);
    rule->has_respond = target->respond != NULL;
    template_part(rb, "respond", target->respond, &rule->respond);
    if (target->transition || target->transitions)
        transitions_bind(rb, target->transition, target->transitions);
    if (target->events)
        events_bind(rb, target->events, &rule->events);
    if (target->key)
        key_bind(rb, target->key);
    rule->scope = expr_part(rb, "scope", target->scope, PLACE_ROW);
    rule->biz_no = expr_part(rb, "biz_no", target->biz_no, PLACE_ROW | PLACE_NO_LITERAL);
    if (target->identity)
        identity_bind(rb, target->identity);
    if (target->fingerprint)
        fingerprint_bind(rb, target->fingerprint);
    park_bind(rb, target->park);
}

void rule_bind(struct binder *b, const struct yaml_node *node, struct rule *rule)
{
    struct rule_target target = {0};
    struct rule_binder *rb = binder_array(b, 1, sizeof *rb);
    if (!rb)
        return;
    rb->b = b;
    rb->rule = rule;
    rule->scope = rule->biz_no = NO_EXPR;
    section_bind(b, node, rule_options, COUNT_OF(rule_options), &target);
    rule->name = target.name;
    rule->biz_type = target.biz_type;
    rule->action = target.action;
    if (target.name.len && !word_is_valid(target.name, RULE_NAME_MAX))
        mistake(b, node, "name: \"%s\" must match [A-Za-z0-9_.-]{1,64}", quote(target.name).text);
    word_check(rb, node, "biz_type", target.biz_type);
    word_check(rb, node, "action", target.action);
    ttl_bind(rb, node, target.ttl);
    parts_bind(rb, &target);
    identity_check(rb, node);
    if (!target.identity)
        rule->identity_none = true;
    if (rule->transition_count + rule->insert_count + rule->statement_count == 0 && !target.transition &&
        !target.transitions)
        mistake(b, node, "has no transition, no insert and no statements: it would do nothing");
    struct expr *exprs = binder_array(b, rb->expr_count, sizeof *exprs);
    if (exprs)
        memcpy(exprs, rb->exprs, rb->expr_count * sizeof *exprs);
    rule->exprs = exprs;
    rule->expr_count = (uint16_t)rb->expr_count;
}
