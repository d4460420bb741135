/* SPDX-License-Identifier: MIT */
/* topic: the topics of the file and the order of their rules. */
#include "rule_bind.h"

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

enum { KIB = 1024, MIB = 1024 * 1024 };

struct topic_target {
    struct bytes database;
    int unmatched;
    uint32_t max_bytes;
    const struct yaml_node *exactly_one, *rules;
};

static const struct word unmatched_words[] = {{"dead_letter", 0}, {"ignore", 1}, {NULL, 0}};

static const struct option topic_options[] = {
    {.name = "database", .kind = OPTION_TEXT, .offset = offsetof(struct topic_target, database), .required = true,
     .nonempty = true},
    {.name = "body", .kind = OPTION_LATER, .accepted = {"json"}},
    {.name = "on_unmatched", .kind = OPTION_WORD, .offset = offsetof(struct topic_target, unmatched),
     .words = unmatched_words, .fallback = "dead_letter"},
    {.name = "max_bytes", .kind = OPTION_SIZE, .width = 4, .offset = offsetof(struct topic_target, max_bytes),
     .min = KIB, .max = 15 * MIB, .fallback = "1MiB"},
    {.name = "exactly_one", .kind = OPTION_NODE, .offset = offsetof(struct topic_target, exactly_one)},
    {.name = "rules", .kind = OPTION_NODE, .offset = offsetof(struct topic_target, rules), .required = true},
    {.name = "ingress", .kind = OPTION_LATER},
    {.name = "reply", .kind = OPTION_LATER},
};

static void database_find(struct binder *b, const struct yaml_node *node, struct topic_target *target,
                          struct topic *topic)
{
    for (uint32_t i = 0; i < b->config->database_count; i++)
        if (bytes_equal(b->config->databases[i].name, target->database)) {
            topic->database = (uint16_t)i;
            return;
        }
    if (target->database.len && b->config->database_count > 0) {
        size_t mark = path_enter(b, "database");
        mistake(b, map_find(node, "database"), "there is no database \"%s\" in this file",
                quote(target->database).text);
        path_leave(b, mark);
    }
}

static void exactly_one_bind(struct binder *b, const struct yaml_node *node, struct topic *topic)
{
    const struct bytes *texts = NULL;
    uint32_t count = 0;
    size_t mark = path_enter(b, "exactly_one");
    struct pointer *list = NULL;
    if (scalar_texts(b, node, ACTIONS_MAX, &texts, &count))
        list = binder_array(b, count, sizeof *list);
    for (uint32_t i = 0; list && i < count; i++)
        pointer_bind(b, node, texts[i], &list[i]);
    topic->exactly_one = list;
    topic->exactly_one_count = list ? count : 0;
    path_leave(b, mark);
}

/* Two conditions are the same if they ask the same of the same value; order does not matter. */
static bool same_condition(const struct rule *x, const struct condition *a, const struct rule *y,
                           const struct condition *c)
{
    if (a->expr == NO_EXPR || c->expr == NO_EXPR || a->match != c->match ||
        !bytes_equal(x->exprs[a->expr].text, y->exprs[c->expr].text) || a->literal_count != c->literal_count)
        return false;
    for (uint32_t i = 0; i < a->literal_count; i++)
        if (!bytes_equal(a->literals[i], c->literals[i]))
            return false;
    return true;
}

/* Whatever holds for `later` holds for `earlier` too. */
static bool hides(const struct rule *earlier, const struct rule *later)
{
    for (uint32_t i = 0; i < earlier->when_count; i++) {
        uint32_t k = 0;
        while (k < later->when_count &&
               !same_condition(earlier, &earlier->when[i], later, &later->when[k]))
            k++;
        if (k == later->when_count)
            return false;
    }
    return true;
}

static void rules_check(struct binder *b, const struct yaml_node *const *nodes, const struct topic *topic)
{
    for (uint32_t i = 1; i < topic->rule_count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const struct rule *rule = &topic->rules[i], *earlier = &topic->rules[k];
            size_t mark = path_enter_index(b, i);
            if (rule->name.len && bytes_equal(rule->name, earlier->name))
                mistake(b, nodes[i], "name: another rule of this topic is called \"%s\"", quote(rule->name).text);
            else if (hides(earlier, rule))
                mistake(b, nodes[i], "can never be reached: rule \"%s\" matches whatever it matches",
                        quote(earlier->name).text);
            path_leave(b, mark);
        }
}

static void rules_bind(struct binder *b, const struct yaml_node *node, struct topic *topic)
{
    uint32_t count = 0;
    size_t mark = path_enter(b, "rules");
    const struct yaml_node *const *items = NULL;
    if (node->kind != YAML_SEQUENCE || node->count == 0)
        mistake(b, node, "must be a list of rules");
    else
        items = list_items(b, &node, RULES_MAX, &count);
    topic->rules = items ? binder_array(b, count, sizeof *topic->rules) : NULL;
    for (uint32_t i = 0; topic->rules && i < count; i++) {
        struct rule *rule = &topic->rules[i];
        const struct yaml_node *name = map_find(items[i], "name");
        size_t inner = name && name->kind == YAML_SCALAR ? path_enter_bytes(b, name->text) : path_enter_index(b, i);
        rule->topic = topic->name;
        rule->database = topic->database;
        rule->index = (uint16_t)b->config->rule_count++;
        rule_bind(b, items[i], rule);
        path_leave(b, inner);
        topic->rule_count++;
    }
    if (topic->rules)
        rules_check(b, items, topic);
    path_leave(b, mark);
}

static void topic_bind(struct binder *b, const struct yaml_node *node, struct topic *topic)
{
    struct topic_target target = {0};
    section_bind(b, node, topic_options, COUNT_OF(topic_options), &target);
    topic->unmatched_ignored = target.unmatched != 0;
    topic->max_bytes = target.max_bytes;
    database_find(b, node, &target, topic);
    if (target.exactly_one)
        exactly_one_bind(b, target.exactly_one, topic);
    if (target.rules)
        rules_bind(b, target.rules, topic);
}

void topics_bind(struct binder *b, const struct yaml_node *node)
{
    struct bytes name;
    const struct yaml_node *value;
    uint32_t index = 0;
    size_t mark = path_enter(b, "topics");
    if (is_mapping(b, node)) {
        uint32_t count = node->count / 2 > TOPICS_MAX ? 0 : node->count / 2;
        if (count == 0)
            mistake(b, node, "must name 1..%d topics", TOPICS_MAX);
        b->config->topics = binder_array(b, count, sizeof *b->config->topics);
        while (count && b->config->topics && map_next(b, node, &index, &name, &value)) {
            struct topic *topic = &b->config->topics[b->config->topic_count];
            size_t inner = path_enter_bytes(b, name);
            if (!topic_name_is_valid(name))
                mistake(b, node->children[index - 2], "is not the name of a topic");
            topic->name = name;
            topic->index = (uint16_t)b->config->topic_count++;
            topic_bind(b, value, topic);
            path_leave(b, inner);
        }
        table_order_check(b, node);
    }
    path_leave(b, mark);
}
