/* SPDX-License-Identifier: MIT */
/* order: the tables that rules of one database lock, each rule in its own order, must not go round in a circle: two
 * workers would wait for each other (design section 6). */
#include "rule_bind.h"

struct table_graph {
    struct bytes names[TABLES_MAX];
    uint32_t count;
    bool edges[TABLES_MAX][TABLES_MAX];
};

static uint32_t table_number(struct table_graph *graph, struct bytes name)
{
    uint32_t i = 0;
    while (i < graph->count && !bytes_equal_nocase(graph->names[i], name))
        i++;
    if (i == graph->count && graph->count < TABLES_MAX)
        graph->names[graph->count++] = name;
    return i < TABLES_MAX ? i : TABLES_MAX - 1;
}

static void visit(struct table_graph *graph, struct bytes table, uint32_t *seen, uint32_t *seen_count)
{
    if (table.len == 0 || *seen_count == TABLES_MAX)
        return;
    uint32_t number = table_number(graph, table);
    for (uint32_t i = 0; i < *seen_count; i++)
        if (seen[i] == number)
            return;              /* locked before: coming back to it waits for nobody */
    if (*seen_count > 0)
        graph->edges[seen[*seen_count - 1]][number] = true;
    seen[(*seen_count)++] = number;
}

static void add_rule(struct table_graph *graph, const struct rule *rule)
{
    uint32_t seen[TABLES_MAX], count = 0;
    for (uint32_t i = 0; i < rule->transition_count; i++)
        visit(graph, rule->transitions[i].table, seen, &count);
    for (uint32_t i = 0; i < rule->insert_count; i++)
        visit(graph, rule->inserts[i].table, seen, &count);
    for (uint32_t i = 0; i < rule->statement_count; i++)
        visit(graph, statement_table(rule->statements[i].sql), seen, &count);
}

/* Whether `to` is reached from `from`; marks what it has seen. */
static bool reaches(const struct table_graph *graph, uint32_t from, uint32_t to, bool *seen)
{
    uint32_t stack[TABLES_MAX], depth = 0;
    stack[depth++] = from;
    seen[from] = true;
    while (depth > 0) {
        uint32_t at = stack[--depth];
        if (graph->edges[at][to])
            return true;
        for (uint32_t i = 0; i < graph->count; i++)
            if (graph->edges[at][i] && !seen[i]) {
                seen[i] = true;
                stack[depth++] = i;
            }
    }
    return false;
}

void table_order_check(struct binder *b, const struct yaml_node *topics)
{
    struct table_graph *graph = binder_array(b, 1, sizeof *graph);
    for (uint32_t database = 0; graph && database < b->config->database_count; database++) {
        memset(graph, 0, sizeof *graph);
        for (uint32_t i = 0; i < b->config->topic_count; i++)
            for (uint32_t k = 0; b->config->topics[i].database == database && k < b->config->topics[i].rule_count;
                 k++)
                add_rule(graph, &b->config->topics[i].rules[k]);
        for (uint32_t i = 0; i < graph->count; i++) {
            bool seen[TABLES_MAX] = {false};
            if (!reaches(graph, i, i, seen))
                continue;
            mistake(b, topics, "rules of database %s lock table %s in different orders: two workers would wait "
                    "for each other", quote(b->config->databases[database].name).text, quote(graph->names[i]).text);
            break;
        }
    }
}
