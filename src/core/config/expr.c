/* SPDX-License-Identifier: MIT */
/* expr: the value grammar (design section 6): a pointer, a header, a fact of the record, now, a field, else literal
 * text. Each distinct value stands once in its rule's table. */
#include "rule_bind.h"

static const struct {
    const char *name;
    enum expr_meta meta;
} metas[] = {{"key", META_KEY}, {"topic", META_TOPIC}, {"partition", META_PARTITION}, {"offset", META_OFFSET},
             {"timestamp", META_TIMESTAMP}};

/* One reference token, ~1 and ~0 undone (RFC 6901 section 4). */
static bool token_bind(struct binder *b, struct bytes raw, struct bytes *ret)
{
    uint8_t *at = arena_alloc(b->arena, raw.len + 1);
    size_t len = 0;
    if (!at)
        return false;
    for (size_t i = 0; i < raw.len; i++) {
        uint8_t c = raw.at[i];
        if (c == '~') {
            if (++i == raw.len || (raw.at[i] != '0' && raw.at[i] != '1'))
                return false;
            c = raw.at[i] == '0' ? '~' : '/';
        }
        at[len++] = c;
    }
    *ret = bytes_of(at, len);
    return true;
}

bool pointer_bind(struct binder *b, const struct yaml_node *node, struct bytes text, struct pointer *ret)
{
    uint32_t count = 0, made = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.at[i] == '/';
    struct bytes *tokens = binder_array(b, count, sizeof *tokens);
    if (!tokens || text.len == 0 || text.at[0] != '/' || count > DOC_DEPTH_MAX)
        return mistake(b, node, "\"%s\" is not a JSON Pointer (/name/name)", quote(text).text);
    for (size_t from = 1; made < count;) {
        size_t to = from;
        while (to < text.len && text.at[to] != '/')
            to++;
        if (!token_bind(b, bytes_of(text.at + from, to - from), &tokens[made++]))
            return mistake(b, node, "\"%s\": in a JSON Pointer ~ must be followed by 0 or 1", quote(text).text);
        from = to + 1;
    }
    *ret = (struct pointer){tokens, count};
    return true;
}

static bool starts_with(struct bytes text, const char *prefix, struct bytes *ret_rest)
{
    size_t len = strlen(prefix);
    if (text.len < len || memcmp(text.at, prefix, len) != 0)
        return false;
    *ret_rest = bytes_of(text.at + len, text.len - len);
    return true;
}

static bool meta_bind(struct binder *b, const struct yaml_node *node, struct bytes name, struct expr *ret)
{
    for (size_t i = 0; i < sizeof metas / sizeof *metas; i++)
        if (bytes_equal(name, bytes_text(metas[i].name))) {
            ret->source = EXPR_META;
            ret->meta = metas[i].meta;
            return true;
        }
    return mistake(b, node, "\"%s\" is none of meta key, topic, partition, offset, timestamp", quote(name).text);
}

static bool field_find(const struct rule_binder *rb, struct bytes name, uint16_t *ret)
{
    for (uint32_t i = 0; i < rb->field_count; i++)
        if (bytes_equal(rb->fields[i].name, name)) {
            *ret = (uint16_t)i;
            return true;
        }
    return false;
}

static bool expr_parse(struct rule_binder *rb, const struct yaml_node *node, struct bytes text, struct expr *ret)
{
    struct bytes rest;
    *ret = (struct expr){.text = text};
    if (text.len > 0 && text.at[0] == '/') {
        ret->source = EXPR_POINTER;
        return pointer_bind(rb->b, node, text, &ret->pointer);
    }
    if (starts_with(text, "header ", &rest)) {
        ret->source = EXPR_HEADER;
        ret->header = rest;
        return rest.len > 0 || mistake(rb->b, node, "names no header");
    }
    if (starts_with(text, "meta ", &rest))
        return meta_bind(rb->b, node, rest, ret);
    if (bytes_equal(text, BYTES_LIT("now"))) {
        ret->source = EXPR_NOW;
        rb->rule->reads_now = true;
    } else if (field_find(rb, text, &ret->field)) {
        ret->source = EXPR_FIELD;
    } else {
        ret->source = EXPR_LITERAL;
        ret->literal = (struct value){.tag = VALUE_TEXT, .text = text};
    }
    return true;
}

static bool place_allows(struct rule_binder *rb, const struct yaml_node *node, const struct expr *expr,
                         unsigned place)
{
    if (expr->source == EXPR_NOW && (place & PLACE_NO_NOW))
        return mistake(rb->b, node, "`now` cannot stand here: it differs at every delivery");
    if (expr->source == EXPR_FIELD && (place & PLACE_NO_FIELD))
        return mistake(rb->b, node, "a field cannot stand here: name where the value is (/pointer, header, meta)");
    if (expr->source == EXPR_LITERAL && (place & PLACE_NO_LITERAL))
        return mistake(rb->b, node, "\"%s\" is no pointer, header, meta or field of this rule",
                       quote(expr->text).text);
    return true;
}

uint16_t expr_bind_text(struct rule_binder *rb, const struct yaml_node *node, struct bytes text, unsigned place)
{
    struct expr made;
    bool reads_now = rb->rule->reads_now;
    if (!expr_parse(rb, node, text, &made) || !place_allows(rb, node, &made, place)) {
        rb->rule->reads_now = reads_now;
        return NO_EXPR;
    }
    uint32_t i = 0;
    while (i < rb->expr_count &&
           !(rb->exprs[i].source == made.source && bytes_equal(rb->exprs[i].text, made.text)))
        i++;
    if (i == EXPRS_MAX) {
        mistake(rb->b, node, "the rule reads more than %d different values", EXPRS_MAX);
        return NO_EXPR;
    }
    if (i == rb->expr_count)
        rb->exprs[rb->expr_count++] = made;
    rb->exprs[i].required = rb->exprs[i].required || (place & PLACE_REQUIRED);
    rb->exprs[i].needs_text = rb->exprs[i].needs_text || (place & PLACE_TEXT);
    return (uint16_t)i;
}

uint16_t expr_bind(struct rule_binder *rb, const struct yaml_node *node, unsigned place)
{
    struct bytes text;
    if (!scalar_text(rb->b, node, false, &text))
        return NO_EXPR;
    return expr_bind_text(rb, node, text, place);
}

void columns_bind(struct rule_binder *rb, const struct yaml_node *node, uint32_t max, unsigned place,
                  const struct column_value **ret, uint32_t *ret_count)
{
    struct bytes column;
    const struct yaml_node *value;
    uint32_t index = 0, count = 0;
    if (!is_mapping(rb->b, node))
        return;
    if (node->count / 2 > max) {
        mistake(rb->b, node, "has more than %u columns", (unsigned)max);
        return;
    }
    struct column_value *list = binder_array(rb->b, node->count / 2, sizeof *list);
    while (list && map_next(rb->b, node, &index, &column, &value)) {
        size_t mark = path_enter_bytes(rb->b, column);
        if (!column_name_is_valid(column))
            mistake(rb->b, node->children[index - 2], "is not the name of a column");
        list[count++] = (struct column_value){.column = column, .expr = expr_bind(rb, value, place)};
        path_leave(rb->b, mark);
    }
    *ret = list;
    *ret_count = count;
}

uint16_t expr_part(struct rule_binder *rb, const char *name, const struct yaml_node *node, unsigned place)
{
    if (!node)
        return NO_EXPR;
    size_t mark = path_enter(rb->b, name);
    uint16_t expr = expr_bind(rb, node, place);
    path_leave(rb->b, mark);
    return expr;
}

void columns_part(struct rule_binder *rb, const char *name, const struct yaml_node *node, uint32_t max, unsigned place,
                  const struct column_value **ret, uint32_t *ret_count)
{
    if (!node)
        return;
    size_t mark = path_enter(rb->b, name);
    columns_bind(rb, node, max, place, ret, ret_count);
    path_leave(rb->b, mark);
}

void template_bind(struct rule_binder *rb, const struct yaml_node *node, struct template *ret)
{
    struct bytes name;
    const struct yaml_node *value;
    uint32_t index = 0, count = 0;
    if (!is_mapping(rb->b, node))
        return;
    struct member *members = binder_array(rb->b, node->count / 2, sizeof *members);
    while (members && map_next(rb->b, node, &index, &name, &value)) {
        size_t mark = path_enter_bytes(rb->b, name);
        members[count++] = (struct member){name, expr_bind(rb, value, PLACE_ANY)};
        path_leave(rb->b, mark);
    }
    *ret = (struct template){members, count};
}

void template_part(struct rule_binder *rb, const char *name, const struct yaml_node *node, struct template *ret)
{
    if (!node)
        return;
    size_t mark = path_enter(rb->b, name);
    template_bind(rb, node, ret);
    path_leave(rb->b, mark);
}

void *actions_bind(struct rule_binder *rb, const struct yaml_node *node, size_t size, action_bind *bind,
                   uint32_t *ret_count)
{
    uint32_t count = 0;
    const struct yaml_node *const *items = list_items(rb->b, &node, ACTIONS_MAX, &count);
    uint8_t *list = items ? binder_array(rb->b, count, size) : NULL;
    *ret_count = list ? count : 0;
    for (uint32_t i = 0; i < *ret_count; i++) {
        size_t mark = path_enter_index(rb->b, i);
        bind(rb, items[i], list + i * size);
        path_leave(rb->b, mark);
    }
    return list;
}
