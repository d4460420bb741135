/* SPDX-License-Identifier: MIT */
/* json: see json.h. The body is copied and read in situ: string values then lie where they stood, so that their
 * source token is found in the body. yyjson does not recurse, so that depth is counted here. */
#include "idem/adapter/json.h"

#include "idem/core/limits.h"

#include <stdlib.h>
#include <yyjson.h>

enum {
    NODES_FIRST = 256,
    SCRATCH_FIRST = 64 << 10,
    SORT_FROM = 16                   /* members of an object from which names are compared sorted, not in pairs */
};

struct json_parser {
    size_t body_max;
    char *copy;                      /* of the body, with yyjson's padding */
    size_t copy_size;
    void *scratch;                   /* yyjson's values */
    size_t scratch_size;
    struct doc_node *nodes;
    uint32_t node_size;
    const struct doc_node **names;   /* for sorting members */
    uint32_t name_size;
    struct doc doc;
};

/* One walk over the values of a document. */
struct walk {
    struct json_parser *parser;
    struct bytes body;
    uint32_t count;
    enum cause cause;
    bool no_memory;
};

struct json_parser *json_parser_create(size_t body_max)
{
    struct json_parser *parser = calloc(1, sizeof *parser);
    if (!parser)
        return NULL;
    parser->body_max = body_max;
    parser->scratch_size = SCRATCH_FIRST;
    parser->scratch = malloc(parser->scratch_size);
    parser->node_size = NODES_FIRST;
    parser->nodes = calloc(parser->node_size, sizeof *parser->nodes);
    if (!parser->scratch || !parser->nodes) {
        json_parser_destroy(parser);
        return NULL;
    }
    return parser;
}

void json_parser_destroy(struct json_parser *parser)
{
    if (!parser)
        return;
    free(parser->copy);
    free(parser->scratch);
    free(parser->nodes);
    free((void *)parser->names);
    free(parser);
}

static bool reserve(void **block, size_t *size, size_t wanted)
{
    if (*size >= wanted)
        return true;
    void *larger = realloc(*block, wanted);
    if (!larger)
        return false;
    *block = larger;
    *size = wanted;
    return true;
}

static struct doc_node *add_node(struct walk *walk)
{
    struct json_parser *parser = walk->parser;
    if (walk->count == parser->node_size) {
        uint32_t size = parser->node_size * 2;
        struct doc_node *nodes = realloc(parser->nodes, size * sizeof *nodes);
        if (!nodes) {
            walk->no_memory = true;
            return NULL;
        }
        parser->nodes = nodes;
        parser->node_size = size;
    }
    struct doc_node *node = &parser->nodes[walk->count++];
    *node = (struct doc_node){0};
    return node;
}

/* ---- tokens ---------------------------------------------------------------------------------------------------- */

/* From the opening quote to the closing one, in the body as it came. */
static struct bytes string_token(const struct walk *walk, const char *text)
{
    size_t from = (size_t)(text - walk->parser->copy) - 1, at = from + 1;
    while (at < walk->body.len && walk->body.at[at] != '"')
        at += walk->body.at[at] == '\\' ? 2 : 1;
    return (struct bytes){walk->body.at + from, at + 1 - from};
}

static void fill_scalar(const struct walk *walk, yyjson_val *value, struct doc_node *node)
{
    switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_STR: {
        const char *text = yyjson_get_str(value);
        node->type = DOC_STRING;
        node->text = bytes_of(text, yyjson_get_len(value));
        node->token = string_token(walk, text);
        return;
    }
    case YYJSON_TYPE_RAW: {
        const char *text = yyjson_get_raw(value);
        node->type = DOC_NUMBER;
        node->text = bytes_of(walk->body.at + (text - walk->parser->copy), yyjson_get_len(value));
        break;
    }
    case YYJSON_TYPE_BOOL:
        node->type = yyjson_is_true(value) ? DOC_TRUE : DOC_FALSE;
        node->text = yyjson_is_true(value) ? BYTES_LIT("true") : BYTES_LIT("false");
        break;
    default:
        node->type = DOC_NULL;
        node->text = BYTES_LIT("null");
    }
    node->token = node->text;
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return bytes_compare((*(const struct doc_node *const *)a)->name,
                         (*(const struct doc_node *const *)b)->name);
}

static bool has_twin_sorted(struct walk *walk, uint32_t object)
{
    struct json_parser *parser = walk->parser;
    uint32_t count = parser->nodes[object].count;
    if (parser->name_size < count) {
        void *larger = realloc((void *)parser->names, count * sizeof *parser->names);
        if (!larger) {
            walk->no_memory = true;
            return false;
        }
        parser->names = larger;
        parser->name_size = count;
    }
    uint32_t at = object + 1;
    for (uint32_t i = 0; i < count; i++) {
        parser->names[i] = &parser->nodes[at];
        at = parser->nodes[at].next;
    }
    qsort((void *)parser->names, count, sizeof *parser->names, by_name);
    for (uint32_t i = 1; i < count; i++)
        if (bytes_equal(parser->names[i - 1]->name, parser->names[i]->name))
            return true;
    return false;
}

static bool has_twin(struct walk *walk, uint32_t object)
{
    const struct doc_node *nodes = walk->parser->nodes;
    uint32_t count = nodes[object].count;
    if (count >= SORT_FROM)
        return has_twin_sorted(walk, object);
    uint32_t a = object + 1;
    for (uint32_t i = 0; i < count; i++, a = nodes[a].next) {
        uint32_t b = nodes[a].next;
        for (uint32_t k = i + 1; k < count; k++, b = nodes[b].next)
            if (bytes_equal(nodes[a].name, nodes[b].name))
                return true;
    }
    return false;
}

/* ---- walking --------------------------------------------------------------------------------------------------- */

struct level {
    uint32_t node;
    size_t left;             /* children still to come */
    bool object;
};

static void close_levels(struct walk *walk, struct level *levels, uint32_t *depth)
{
    while (*depth > 0 && levels[*depth - 1].left == 0) {
        struct level *level = &levels[--*depth];
        walk->parser->nodes[level->node].next = walk->count;
        if (level->object && walk->cause == CAUSE_NONE && has_twin(walk, level->node))
            walk->cause = CAUSE_DUPLICATE_NAME;
    }
}

/* yyjson keeps the values of a document one after the other, in document order. Depth is looked at by itself first:
 * too deep outranks what else may be wrong. */
static void flatten(struct walk *walk, yyjson_val *value)
{
    struct level levels[DOC_DEPTH_MAX + 1];
    uint32_t depth = 0;
    do {
        struct bytes name = {0};
        if (depth > 0) {
            struct level *level = &levels[depth - 1];
            level->left--;
            if (level->object) {
                name = bytes_of(yyjson_get_str(value), yyjson_get_len(value));
                value++;
            }
        }
        struct doc_node *node = add_node(walk);
        if (!node)
            return;
        node->name = name;
        node->next = walk->count;
        if (yyjson_is_ctn(value)) {
            if (depth == DOC_DEPTH_MAX) {
                walk->cause = CAUSE_TOO_DEEP;
                return;
            }
            node->type = yyjson_is_obj(value) ? DOC_OBJECT : DOC_ARRAY;
            node->count = (uint32_t)yyjson_get_len(value);
            levels[depth++] = (struct level){walk->count - 1, yyjson_get_len(value), yyjson_is_obj(value)};
        } else {
            fill_scalar(walk, value, node);
        }
        value++;
        close_levels(walk, levels, &depth);
    } while (depth > 0 && !walk->no_memory);
}

/* ---- parsing --------------------------------------------------------------------------------------------------- */

static enum cause cause_of(const yyjson_read_err *error, struct bytes body)
{
    if (!bytes_is_utf8(body))
        return CAUSE_UTF8;
    /* A lone surrogate is well-formed JSON text that stands for no character. */
    if (error->code == YYJSON_READ_ERROR_INVALID_STRING && error->msg && strstr(error->msg, "surrogate"))
        return CAUSE_UTF8;
    return CAUSE_BODY;
}

/* Depth by brackets outside of strings: a body that never closes them is too deep all the same. */
static bool is_too_deep(struct bytes body)
{
    size_t depth = 0;
    for (size_t i = 0; i < body.len; i++) {
        uint8_t c = body.at[i];
        if (c == '"') {
            for (i++; i < body.len && body.at[i] != '"'; i++)
                i += body.at[i] == '\\';
        } else if (c == '[' || c == '{') {
            if (++depth > DOC_DEPTH_MAX)
                return true;
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        }
    }
    return false;
}

static bool read(struct json_parser *parser, struct bytes body, yyjson_doc **ret_doc, yyjson_read_err *error)
{
    const yyjson_read_flag flags = YYJSON_READ_INSITU | YYJSON_READ_NUMBER_AS_RAW;
    yyjson_alc alc;
    if (!reserve((void **)&parser->copy, &parser->copy_size, body.len + YYJSON_PADDING_SIZE) ||
        !reserve(&parser->scratch, &parser->scratch_size,
                 yyjson_read_max_memory_usage(body.len, flags) + 4096))
        return false;
    memcpy(parser->copy, body.at, body.len);
    memset(parser->copy + body.len, 0, YYJSON_PADDING_SIZE);
    yyjson_alc_pool_init(&alc, parser->scratch, parser->scratch_size);
    *ret_doc = yyjson_read_opts(parser->copy, body.len, flags, &alc, error);
    return *ret_doc || error->code != YYJSON_READ_ERROR_MEMORY_ALLOCATION;
}

static bool parse(void *self, struct bytes body, struct parsed *ret)
{
    struct json_parser *parser = self;
    struct walk walk = {.parser = parser, .body = body};
    yyjson_doc *doc = NULL;
    yyjson_read_err error = {0};
    *ret = (struct parsed){.cause = CAUSE_BODY};
    if (body.len == 0)
        return true;
    if (is_too_deep(body)) {
        ret->cause = bytes_is_utf8(body) ? CAUSE_TOO_DEEP : CAUSE_UTF8;
        return true;
    }
    if (!read(parser, body, &doc, &error))
        return false;
    if (!doc) {
        ret->cause = cause_of(&error, body);
        return true;
    }
    if (!yyjson_is_obj(yyjson_doc_get_root(doc)))
        return true;
    flatten(&walk, yyjson_doc_get_root(doc));
    if (walk.no_memory)
        return false;
    parser->doc = (struct doc){parser->nodes, walk.count};
    *ret = (struct parsed){.cause = walk.cause, .doc = &parser->doc};
    return true;
}

struct parser_port json_parser_port(struct json_parser *parser)
{
    return (struct parser_port){parser, parse};
}
