/* SPDX-License-Identifier: MIT */
/* yaml: libyaml's events to a tree with marks. Aliases, tags and several documents are refused: a configuration says
 * what it says where it stands. */
#include "idem/adapter/config_load.h"

#include <stdio.h>
#include <yaml.h>

enum { DEPTH_MAX = 64, NODES_MAX = 100000 };

struct child {
    struct child *next;
    const struct yaml_node *node;
};

struct frame {
    struct yaml_node *node;
    struct child *first, *last;
};

struct builder {
    struct arena *arena;
    struct diagnostics *mistakes;
    struct frame frames[DEPTH_MAX];
    uint32_t depth, nodes;
    const struct yaml_node *root;
    bool bad;
};

static void complain(struct builder *builder, const yaml_mark_t *mark, const char *text)
{
    builder->bad = true;
    diagnostics_add(builder->mistakes, (uint32_t)mark->line + 1, (uint32_t)mark->column + 1, "", text);
}

static struct yaml_node *make(struct builder *builder, const yaml_event_t *event, enum yaml_kind kind)
{
    struct yaml_node *node = arena_calloc(builder->arena, 1, sizeof *node);
    if (!node || ++builder->nodes > NODES_MAX) {
        complain(builder, &event->start_mark, "the file is too large");
        return NULL;
    }
    node->kind = kind;
    node->line = (uint32_t)event->start_mark.line + 1;
    node->column = (uint32_t)event->start_mark.column + 1;
    return node;
}

static void attach(struct builder *builder, const yaml_event_t *event, const struct yaml_node *node)
{
    if (builder->depth == 0) {
        builder->root = node;
        return;
    }
    struct frame *frame = &builder->frames[builder->depth - 1];
    struct child *child = arena_calloc(builder->arena, 1, sizeof *child);
    if (!child) {
        complain(builder, &event->start_mark, "the file is too large");
        return;
    }
    child->node = node;
    if (frame->last)
        frame->last->next = child;
    else
        frame->first = child;
    frame->last = child;
    frame->node->count++;
}

static void scalar(struct builder *builder, const yaml_event_t *event)
{
    struct yaml_node *node = make(builder, event, YAML_SCALAR);
    if (!node)
        return;
    if (event->data.scalar.anchor || event->data.scalar.tag)
        complain(builder, &event->start_mark, "anchors and tags are not used here");
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = arena_copy(builder->arena, bytes_of(event->data.scalar.value, event->data.scalar.length));
    if (!node->text.at)
        complain(builder, &event->start_mark, "the file is too large");
    attach(builder, event, node);
}

static void open_node(struct builder *builder, const yaml_event_t *event, enum yaml_kind kind, bool marked)
{
    struct yaml_node *node = make(builder, event, kind);
    if (!node)
        return;
    if (marked)
        complain(builder, &event->start_mark, "anchors and tags are not used here");
    if (builder->depth == DEPTH_MAX) {
        complain(builder, &event->start_mark, "nested too deep");
        return;
    }
    attach(builder, event, node);
    builder->frames[builder->depth++] = (struct frame){.node = node};
}

static void close_node(struct builder *builder, const yaml_event_t *event)
{
    struct frame *frame = &builder->frames[--builder->depth];
    const struct yaml_node **children =
        arena_calloc(builder->arena, frame->node->count + 1u, sizeof *children);
    if (!children) {
        complain(builder, &event->start_mark, "the file is too large");
        frame->node->count = 0;
        return;
    }
    uint32_t at = 0;
    for (const struct child *child = frame->first; child; child = child->next)
        children[at++] = child->node;
    frame->node->children = children;
}

/* false: nothing more to read. */
static bool take(struct builder *builder, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        scalar(builder, event);
        break;
    case YAML_SEQUENCE_START_EVENT:
        open_node(builder, event, YAML_SEQUENCE, event->data.sequence_start.anchor || event->data.sequence_start.tag);
        break;
    case YAML_MAPPING_START_EVENT:
        open_node(builder, event, YAML_MAPPING, event->data.mapping_start.anchor || event->data.mapping_start.tag);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_node(builder, event);
        break;
    case YAML_ALIAS_EVENT:
        complain(builder, &event->start_mark, "aliases are not used here");
        break;
    case YAML_DOCUMENT_START_EVENT:
        if (builder->root)
            complain(builder, &event->start_mark, "a second document");
        break;
    case YAML_STREAM_END_EVENT:
        return false;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
    return !builder->bad;
}

bool yaml_parse(struct bytes text, struct arena *arena, const struct yaml_node **ret_root,
                struct diagnostics *mistakes)
{
    yaml_parser_t parser;
    struct builder builder = {.arena = arena, .mistakes = mistakes};
    bool more = true;
    if (!yaml_parser_initialize(&parser)) {
        diagnostics_add(mistakes, 0, 0, "", "out of memory");
        return false;
    }
    yaml_parser_set_input_string(&parser, text.at, text.len);
    while (more) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            char message[200];
            snprintf(message, sizeof message, "not YAML: %s%s%s", parser.problem ? parser.problem : "unreadable",
                     parser.context ? ", " : "", parser.context ? parser.context : "");
            complain(&builder, &parser.problem_mark, message);
            break;
        }
        more = take(&builder, &event);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    if (!builder.bad && !builder.root) {
        diagnostics_add(mistakes, 0, 0, "", "the file is empty");
        return false;
    }
    *ret_root = builder.root;
    return !builder.bad;
}
