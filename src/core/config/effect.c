/* SPDX-License-Identifier: MIT */
/* effect: what a record leaves besides its business row: the rule's inserts, its events, events on other outcomes. */
#include "rule_bind.h"

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

enum { NAME_BYTES = 64 };            /* idem_outbox.aggregatetype, type */

struct insert_target {
    struct bytes table;
    const struct yaml_node *columns, *unique;
};

static const struct option insert_options[] = {
    {.name = "table", .kind = OPTION_TEXT, .offset = offsetof(struct insert_target, table), .required = true,
     .nonempty = true},
    {.name = "columns", .kind = OPTION_NODE, .offset = offsetof(struct insert_target, columns), .required = true},
    {.name = "unique", .kind = OPTION_NODE, .offset = offsetof(struct insert_target, unique)},
};

struct event_target {
    struct bytes topic, aggregate, type;
    const struct yaml_node *key, *payload, *headers;
};

static const struct option event_options[] = {
    {.name = "topic", .kind = OPTION_TEXT, .offset = offsetof(struct event_target, topic), .required = true,
     .nonempty = true},
    {.name = "aggregate", .kind = OPTION_TEXT, .offset = offsetof(struct event_target, aggregate),
     .required = true, .nonempty = true},
    {.name = "type", .kind = OPTION_TEXT, .offset = offsetof(struct event_target, type), .required = true,
     .nonempty = true},
    {.name = "key", .kind = OPTION_NODE, .offset = offsetof(struct event_target, key), .required = true},
    {.name = "payload", .kind = OPTION_NODE, .offset = offsetof(struct event_target, payload), .required = true},
    {.name = "headers", .kind = OPTION_NODE, .offset = offsetof(struct event_target, headers)},
};

struct on_target {
    const struct yaml_node *events;
};

static const struct option on_options[] = {
    {.name = "events", .kind = OPTION_NODE, .offset = offsetof(struct on_target, events), .required = true},
};

static void unique_bind(struct rule_binder *rb, const struct yaml_node *node, struct insert *insert)
{
    const struct bytes *names = NULL;
    uint32_t count = 0;
    size_t mark = path_enter(rb->b, "unique");
    uint16_t *unique = NULL;
    if (scalar_texts(rb->b, node, insert->column_count ? insert->column_count : 1, &names, &count))
        unique = binder_array(rb->b, count, sizeof *unique);
    for (uint32_t i = 0; unique && i < count; i++) {
        uint32_t at = 0;
        while (at < insert->column_count && !bytes_equal(insert->columns[at].column, names[i]))
            at++;
        if (at == insert->column_count)
            mistake(rb->b, node, "\"%s\" is none of this insert's columns", quote(names[i]).text);
        unique[i] = (uint16_t)at;
    }
    insert->unique = unique;
    insert->unique_count = unique ? count : 0;
    path_leave(rb->b, mark);
}

static void insert_bind(struct rule_binder *rb, const struct yaml_node *node, void *made)
{
    struct insert *ret = made;
    struct insert_target target = {0};
    section_bind(rb->b, node, insert_options, COUNT_OF(insert_options), &target);
    ret->table = target.table;
    if (target.table.len && !table_name_is_valid(target.table))
        mistake(rb->b, node, "table: \"%s\" is not the name of a table", quote(target.table).text);
    columns_part(rb, "columns", target.columns, EXPRS_MAX, PLACE_TEXT, &ret->columns, &ret->column_count);
    if (target.unique)
        unique_bind(rb, target.unique, ret);
}

void inserts_bind(struct rule_binder *rb, const struct yaml_node *node)
{
    rb->rule->inserts = actions_bind(rb, node, sizeof *rb->rule->inserts, insert_bind, &rb->rule->insert_count);
}

static void name_check(struct rule_binder *rb, const struct yaml_node *node, const char *what, struct bytes name)
{
    if (name.len && !word_is_valid(name, NAME_BYTES))
        mistake(rb->b, node, "%s: \"%s\" must match [A-Za-z0-9_.-]{1,%d}", what, quote(name).text, NAME_BYTES);
}

static void event_bind(struct rule_binder *rb, const struct yaml_node *node, void *made)
{
    struct event *ret = made;
    struct event_target target = {0};
    section_bind(rb->b, node, event_options, COUNT_OF(event_options), &target);
    ret->topic = target.topic;
    ret->aggregate = target.aggregate;
    ret->type = target.type;
    if (target.topic.len && !topic_name_is_valid(target.topic))
        mistake(rb->b, node, "topic: \"%s\" is not the name of a topic", quote(target.topic).text);
    name_check(rb, node, "aggregate", target.aggregate);
    name_check(rb, node, "type", target.type);
    ret->key = expr_part(rb, "key", target.key, PLACE_REQUIRED | PLACE_TEXT | PLACE_NO_NOW);
    template_part(rb, "payload", target.payload, &ret->payload);
    template_part(rb, "headers", target.headers, &ret->headers);
}

void events_bind(struct rule_binder *rb, const struct yaml_node *node, struct event_list *ret)
{
    size_t mark = path_enter(rb->b, "events");
    ret->events = actions_bind(rb, node, sizeof *ret->events, event_bind, &ret->count);
    path_leave(rb->b, mark);
}

/* Outcomes whose dead letter may send events when it is new. */
static bool outcome_may_send(struct bytes name, enum outcome *ret)
{
    return outcome_parse(name, ret) && outcome_row(*ret)->dead_letter && *ret != OUTCOME_INVALID;
}

void on_bind(struct rule_binder *rb, const struct yaml_node *node)
{
    struct bytes name;
    const struct yaml_node *value;
    uint32_t index = 0;
    if (!is_mapping(rb->b, node))
        return;
    while (map_next(rb->b, node, &index, &name, &value)) {
        enum outcome outcome = OUTCOME_NONE;
        struct on_target target = {0};
        size_t mark = path_enter_bytes(rb->b, name);
        if (!outcome_may_send(name, &outcome))
            mistake(rb->b, node->children[index - 2], "must be one of key_reused, applied_by_other, "
                    "state_conflict, not_found, rejected");
        section_bind(rb->b, value, on_options, COUNT_OF(on_options), &target);
        if (target.events && outcome != OUTCOME_NONE)
            events_bind(rb, target.events, &rb->rule->on[outcome]);
        path_leave(rb->b, mark);
    }
}
