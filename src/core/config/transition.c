/* SPDX-License-Identifier: MIT */
/* transition: which rows a record moves, from where to where. Every state belongs to one list. */
#include "rule_bind.h"

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

struct transition_target {
    struct bytes table, column, to;
    const struct yaml_node *where, *from, *early, *already, *conflict, *require, *set;
    bool self;
};

static const struct option transition_options[] = {
    {.name = "table", .kind = OPTION_TEXT, .offset = offsetof(struct transition_target, table), .required = true,
     .nonempty = true},
    {.name = "where", .kind = OPTION_NODE, .offset = offsetof(struct transition_target, where), .required = true},
    {.name = "column", .kind = OPTION_TEXT, .offset = offsetof(struct transition_target, column),
     .required = true, .nonempty = true},
    {.name = "from", .kind = OPTION_NODE, .offset = offsetof(struct transition_target, from), .required = true},
    {.name = "to", .kind = OPTION_TEXT, .offset = offsetof(struct transition_target, to), .required = true},
    {.name = "early", .kind = OPTION_NODE, .offset = offsetof(struct transition_target, early)},
    {.name = "already", .kind = OPTION_NODE, .offset = offsetof(struct transition_target, already)},
    {.name = "conflict", .kind = OPTION_NODE, .offset = offsetof(struct transition_target, conflict)},
    {.name = "require", .kind = OPTION_NODE, .offset = offsetof(struct transition_target, require)},
    {.name = "set", .kind = OPTION_NODE, .offset = offsetof(struct transition_target, set)},
    {.name = "self", .kind = OPTION_BOOL, .offset = offsetof(struct transition_target, self)},
};

static void states_bind(struct rule_binder *rb, const char *name, const struct yaml_node *node,
                        const struct bytes **ret, uint32_t *ret_count)
{
    if (!node)
        return;
    size_t mark = path_enter(rb->b, name);
    if (node->kind != YAML_SEQUENCE || node->count > 0)      /* an empty list is a list */
        scalar_texts(rb->b, node, LITERALS_MAX, ret, ret_count);
    path_leave(rb->b, mark);
}

static bool among(struct bytes state, const struct bytes *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (bytes_equal(state, list[i]))
            return true;
    return false;
}

/* A state of `list` that stands in another list too. */
static void apart(struct rule_binder *rb, const struct yaml_node *node, const struct bytes *list, uint32_t count,
                  const char *name, const struct bytes *other, uint32_t other_count, const char *other_name)
{
    for (uint32_t i = 0; i < count; i++)
        if (among(list[i], other, other_count))
            mistake(rb->b, node, "state %s stands in %s and in %s", quote(list[i]).text, name, other_name);
}

static void states_check(struct rule_binder *rb, const struct yaml_node *node, const struct transition *t)
{
    apart(rb, node, t->from, t->from_count, "from", t->already, t->already_count, "already");
    apart(rb, node, t->from, t->from_count, "from", t->early, t->early_count, "early");
    apart(rb, node, t->from, t->from_count, "from", t->conflict, t->conflict_count, "conflict");
    apart(rb, node, t->already, t->already_count, "already", t->early, t->early_count, "early");
    apart(rb, node, t->already, t->already_count, "already", t->conflict, t->conflict_count, "conflict");
    apart(rb, node, t->early, t->early_count, "early", t->conflict, t->conflict_count, "conflict");
    apart(rb, node, &t->to, 1, "to", t->early, t->early_count, "early");
    apart(rb, node, &t->to, 1, "to", t->conflict, t->conflict_count, "conflict");
    if (!t->self)
        apart(rb, node, &t->to, 1, "to", t->from, t->from_count, "from (that needs self: true)");
}

static void transition_bind(struct rule_binder *rb, const struct yaml_node *node, struct transition *ret)
{
    struct transition_target target = {0};
    section_bind(rb->b, node, transition_options, COUNT_OF(transition_options), &target);
    ret->table = target.table;
    ret->column = target.column;
    ret->to = target.to;
    ret->self = target.self;
    if (target.table.len && !table_name_is_valid(target.table))
        mistake(rb->b, node, "table: \"%s\" is not the name of a table", quote(target.table).text);
    if (target.column.len && !column_name_is_valid(target.column))
        mistake(rb->b, node, "column: \"%s\" is not the name of a column", quote(target.column).text);
    columns_part(rb, "where", target.where, WHERE_MAX, PLACE_ROW, &ret->where, &ret->where_count);
    columns_part(rb, "require", target.require, REQUIRE_MAX, PLACE_ROW, &ret->require, &ret->require_count);
    columns_part(rb, "set", target.set, EXPRS_MAX, PLACE_TEXT, &ret->set, &ret->set_count);
    states_bind(rb, "from", target.from, &ret->from, &ret->from_count);
    states_bind(rb, "early", target.early, &ret->early, &ret->early_count);
    states_bind(rb, "already", target.already, &ret->already, &ret->already_count);
    states_bind(rb, "conflict", target.conflict, &ret->conflict, &ret->conflict_count);
    if (target.where && ret->where_count == 0)
        mistake(rb->b, target.where, "where must name at least one column");
    for (uint32_t i = 0; i < ret->set_count; i++)
        if (bytes_equal(ret->set[i].column, ret->column))
            mistake(rb->b, target.set, "set: the state column is set by `to`");
    states_check(rb, node, ret);
}

void transitions_bind(struct rule_binder *rb, const struct yaml_node *one, const struct yaml_node *many)
{
    uint32_t count = 0;
    const struct yaml_node *const *items = &one;
    if (one && many) {
        mistake(rb->b, many, "give transition or transitions, not both");
        return;
    }
    size_t mark = path_enter(rb->b, one ? "transition" : "transitions");
    if (one)
        count = 1;
    else if (many->kind != YAML_SEQUENCE || many->count == 0)
        mistake(rb->b, many, "must be a list of transitions");
    else
        items = list_items(rb->b, &many, TRANSITIONS_MAX, &count);
    struct transition *list = binder_array(rb->b, count, sizeof *list);
    for (uint32_t i = 0; items && list && i < count; i++) {
        size_t inner = one ? path_enter(rb->b, "") : path_enter_index(rb->b, i);
        if (one)
            path_leave(rb->b, inner);
        transition_bind(rb, items[i], &list[i]);
        path_leave(rb->b, inner);
    }
    path_leave(rb->b, mark);
    rb->rule->transitions = list;
    rb->rule->transition_count = items && list ? count : 0;
}
