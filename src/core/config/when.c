/* SPDX-License-Identifier: MIT */
/* when: the conditions of a rule: a literal, a list of literals, {present: bool}, {not: [..]}. */
#include "rule_bind.h"

static bool literals_bind(struct rule_binder *rb, const struct yaml_node *node, struct condition *ret)
{
    return scalar_texts(rb->b, node, LITERALS_MAX, &ret->literals, &ret->literal_count);
}

static bool clause_bind(struct rule_binder *rb, const struct yaml_node *node, struct condition *ret)
{
    struct bytes name;
    const struct yaml_node *value;
    uint32_t index = 0;
    bool present = false;
    if (node->count != 2 || !map_next(rb->b, node, &index, &name, &value))
        return mistake(rb->b, node, "must be {present: true|false} or {not: [..]}");
    if (bytes_equal(name, BYTES_LIT("present"))) {
        if (!scalar_bool(rb->b, value, &present))
            return false;
        ret->match = present ? MATCH_PRESENT : MATCH_ABSENT;
        return true;
    }
    if (!bytes_equal(name, BYTES_LIT("not")))
        return mistake(rb->b, node, "\"%s\" is neither present nor not", quote(name).text);
    ret->match = MATCH_NOT;
    return literals_bind(rb, value, ret);
}

void when_bind(struct rule_binder *rb, const struct yaml_node *node)
{
    struct bytes name;
    const struct yaml_node *value;
    uint32_t index = 0, count = 0;
    if (!is_mapping(rb->b, node))
        return;
    struct condition *list = binder_array(rb->b, node->count / 2, sizeof *list);
    while (list && map_next(rb->b, node, &index, &name, &value)) {
        struct condition *made = &list[count];
        size_t mark = path_enter_bytes(rb->b, name);
        made->expr = expr_bind_text(rb, node->children[index - 2], name,
                                    PLACE_NO_NOW | PLACE_NO_LITERAL | PLACE_NO_FIELD);
        made->match = MATCH_EQUAL;
        if (value->kind == YAML_MAPPING ? clause_bind(rb, value, made) : literals_bind(rb, value, made))
            count++;
        path_leave(rb->b, mark);
    }
    rb->rule->when = list;
    rb->rule->when_count = count;
}
