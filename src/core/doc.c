/* SPDX-License-Identifier: MIT */
/* doc: finding a node by pointer and writing a node back as JSON. Pure; walks the flat list, never recurses. */
#include "idem/core/doc.h"

#include "idem/core/limits.h"

static const struct doc_node *find_member(const struct doc *doc, const struct doc_node *object,
                                          struct bytes name)
{
    const struct doc_node *child = object + 1;
    for (uint32_t i = 0; i < object->count; i++) {
        if (bytes_equal(child->name, name))
            return child;
        child = &doc->nodes[child->next];
    }
    return NULL;
}

/* RFC 6901 section 4: digits without leading zeros. */
static bool array_index(struct bytes token, uint32_t *ret_index)
{
    uint64_t index = 0;
    if (token.len == 0 || token.len > 9 || (token.len > 1 && token.at[0] == '0'))
        return false;
    for (size_t i = 0; i < token.len; i++) {
        if (token.at[i] < '0' || token.at[i] > '9')
            return false;
        index = index * 10 + (uint64_t)(token.at[i] - '0');
    }
    *ret_index = (uint32_t)index;
    return true;
}

static const struct doc_node *find_element(const struct doc *doc, const struct doc_node *array,
                                           struct bytes token)
{
    uint32_t index;
    if (!array_index(token, &index) || index >= array->count)
        return NULL;
    const struct doc_node *child = array + 1;
    for (uint32_t i = 0; i < index; i++)
        child = &doc->nodes[child->next];
    return child;
}

const struct doc_node *doc_find(const struct doc *doc, struct pointer pointer)
{
    const struct doc_node *node = doc->count ? &doc->nodes[0] : NULL;
    for (uint32_t i = 0; i < pointer.count && node; i++) {
        if (node->type == DOC_OBJECT)
            node = find_member(doc, node, pointer.tokens[i]);
        else if (node->type == DOC_ARRAY)
            node = find_element(doc, node, pointer.tokens[i]);
        else
            node = NULL;
    }
    return node;
}

struct level {
    uint32_t end;        /* index just past the container */
    bool object, started;
};

static void close_levels(struct level *levels, uint32_t *depth, uint32_t at, struct buf *buf)
{
    while (*depth > 0 && levels[*depth - 1].end <= at)
        buf_char(buf, levels[--*depth].object ? '}' : ']');
}

void doc_write(const struct doc *doc, const struct doc_node *node, struct buf *buf)
{
    struct level levels[DOC_DEPTH_MAX + 2];
    uint32_t depth = 0, first = (uint32_t)(node - doc->nodes);
    for (uint32_t at = first; at < node->next; at++) {
        const struct doc_node *next = &doc->nodes[at];
        close_levels(levels, &depth, at, buf);
        if (depth > 0) {
            struct level *level = &levels[depth - 1];
            if (level->started)
                buf_char(buf, ',');
            level->started = true;
            if (level->object) {
                buf_json_string(buf, next->name);
                buf_char(buf, ':');
            }
        }
        if (next->type != DOC_ARRAY && next->type != DOC_OBJECT) {
            buf_bytes(buf, next->token);
        } else if (depth < DOC_DEPTH_MAX + 2) {
            buf_char(buf, next->type == DOC_OBJECT ? '{' : '[');
            levels[depth++] = (struct level){next->next, next->type == DOC_OBJECT, false};
        } else {
            buf->overflow = true;
            return;
        }
    }
    close_levels(levels, &depth, node->next, buf);
}
