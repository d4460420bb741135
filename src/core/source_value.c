/* SPDX-License-Identifier: MIT */
/* source_value: values out of a record, untyped or by field, for evaluate. Pure. */
#include "source_value.h"

/* Digits of a number in the arena. */
static enum cause number_value(struct input *in, int64_t number, struct value *ret)
{
    char digits[24];
    struct buf buf;
    buf_init(&buf, digits, sizeof digits);
    buf_int(&buf, number);
    *ret = (struct value){.tag = VALUE_INTEGER, .text = arena_copy(in->arena, buf_view(&buf))};
    return CAUSE_NONE;
}

static enum cause text_value(struct bytes text, struct value *ret)
{
    *ret = (struct value){.tag = VALUE_TEXT, .text = text};
    return bytes_is_utf8(text) ? CAUSE_NONE : CAUSE_UTF8;
}

/* Containers are written out without blanks; that is the only form they have. */
static struct bytes container_token(struct input *in, const struct doc_node *node)
{
    struct buf buf;
    buf_init(&buf, in->arena->base + in->arena->used, in->arena->size - in->arena->used);
    doc_write(in->doc, node, &buf);
    if (buf.overflow)
        in->arena->exhausted = true;
    else
        in->arena->used += buf.len;
    return buf_view(&buf);
}

static enum cause node_value(struct input *in, const struct doc_node *node, struct value *ret)
{
    *ret = (struct value){.tag = VALUE_ABSENT};
    if (!node)
        return CAUSE_NONE;
    ret->token = node->token;
    ret->text = node->text;
    switch (node->type) {
    case DOC_NULL:
        ret->tag = VALUE_NULL;
        ret->text = (struct bytes){0};
        break;
    case DOC_FALSE:
    case DOC_TRUE:
        ret->tag = VALUE_BOOL;
        break;
    case DOC_STRING:
        ret->tag = VALUE_TEXT;
        break;
    case DOC_NUMBER:
        ret->tag = integer_is_canonical(node->text) ? VALUE_TEXT : VALUE_OTHER;
        break;
    case DOC_ARRAY:
    case DOC_OBJECT:
        ret->tag = VALUE_OTHER;
        ret->text = (struct bytes){0};
        ret->token = container_token(in, node);
    }
    return CAUSE_NONE;
}

/* The first of that name; null is null. */
static enum cause header_value(struct input *in, struct bytes wanted, struct value *ret)
{
    size_t at = 0;
    struct bytes name, value;
    bool is_null;
    *ret = (struct value){.tag = VALUE_ABSENT};
    while (record_header_next(in->record->headers, &at, &name, &value, &is_null)) {
        if (!bytes_equal_nocase(name, wanted))
            continue;
        if (!is_null)
            return text_value(value, ret);
        ret->tag = VALUE_NULL;
        return CAUSE_NONE;
    }
    return CAUSE_NONE;
}

static enum cause meta_value(struct input *in, enum expr_meta meta, struct value *ret)
{
    const struct record *record = in->record;
    *ret = (struct value){.tag = VALUE_ABSENT};
    switch (meta) {
    case META_KEY:
        if (record->has_key)
            return text_value(record->key, ret);
        ret->tag = VALUE_NULL;
        return CAUSE_NONE;
    case META_TOPIC:
        return text_value(record->topic, ret);
    case META_PARTITION:
        return number_value(in, record->partition, ret);
    case META_OFFSET:
        return number_value(in, record->offset, ret);
    case META_TIMESTAMP:
        return record->timestamp_ms < 0 ? CAUSE_NONE : number_value(in, record->timestamp_ms, ret);
    }
    return CAUSE_NONE;
}

enum cause source_value(const struct expr *expr, struct input *in, struct value *ret)
{
    switch (expr->source) {
    case EXPR_POINTER:
        return node_value(in, doc_find(in->doc, expr->pointer), ret);
    case EXPR_HEADER:
        return header_value(in, expr->header, ret);
    case EXPR_META:
        return meta_value(in, expr->meta, ret);
    case EXPR_NOW:
        *ret = (struct value){.tag = VALUE_NOW};
        return CAUSE_NONE;
    case EXPR_LITERAL:
        *ret = expr->literal;
        return CAUSE_NONE;
    case EXPR_FIELD:
        break;
    }
    *ret = (struct value){.tag = VALUE_ABSENT};
    return CAUSE_NONE;
}

/* ---- fields ---------------------------------------------------------------------------------------------------- */

static bool is_absent(const struct value *value)
{
    return value->tag == VALUE_ABSENT || value->tag == VALUE_NULL;
}

bool source_is_absent(const struct rule *rule, const struct expr *field_expr, struct input *in)
{
    struct value value;
    const struct field *field = &rule->fields[field_expr->field];
    return source_value(&rule->exprs[field->at], in, &value) == CAUSE_NONE && is_absent(&value) &&
           !field->has_default;
}

/* How many digits of the value are minor units. */
static enum cause minor_shift(const struct rule *rule, const struct field *field, struct input *in,
                              unsigned *ret)
{
    struct value by;
    *ret = 0;
    if (!field->minor)
        return CAUSE_NONE;
    *ret = field->minor_digits;
    if (field->minor_by == NO_EXPR)
        return CAUSE_NONE;
    enum cause cause = source_value(&rule->exprs[field->minor_by], in, &by);
    if (cause != CAUSE_NONE)
        return cause;
    if (is_absent(&by))
        return CAUSE_FIELD_MISSING;
    for (uint32_t i = 0; i < field->minor_count; i++)
        if (bytes_equal(by.text, field->minor_units[i].literal)) {
            *ret = field->minor_units[i].digits;
            return CAUSE_NONE;
        }
    *ret = field->minor_default;
    return field->has_minor_default ? CAUSE_NONE : CAUSE_FIELD_TYPE;
}

static enum cause typed_text(const struct value *raw, struct value *ret)
{
    if (raw->tag == VALUE_OTHER || raw->tag == VALUE_BOOL)
        return CAUSE_FIELD_TYPE;
    *ret = (struct value){.tag = VALUE_TEXT, .text = raw->text};
    return CAUSE_NONE;
}

static enum cause typed_integer(const struct value *raw, struct value *ret)
{
    if (raw->tag == VALUE_BOOL || !integer_is_canonical(raw->text))
        return CAUSE_FIELD_TYPE;
    *ret = (struct value){.tag = VALUE_INTEGER, .text = raw->text};
    return CAUSE_NONE;
}

static enum cause typed_decimal(const struct rule *rule, const struct field *field, struct input *in,
                                const struct value *raw, struct value *ret)
{
    unsigned shift;
    enum cause cause = minor_shift(rule, field, in, &shift);
    if (cause != CAUSE_NONE)
        return cause;
    if (raw->tag == VALUE_BOOL)
        return CAUSE_FIELD_TYPE;
    *ret = (struct value){.tag = VALUE_DECIMAL};
    return decimal_parse(raw->text, field->scale, shift, in->arena, &ret->text);
}

static enum cause typed_time(const struct field *field, struct input *in, const struct value *raw,
                             struct value *ret)
{
    if (raw->tag == VALUE_BOOL)
        return CAUSE_FIELD_TYPE;
    *ret = (struct value){.tag = VALUE_TIME};
    return time_parse(raw->text, field->format, field->pattern, field->zone, in->arena, &ret->text);
}

enum cause field_value(const struct rule *rule, const struct field *field, struct input *in,
                       struct value *ret)
{
    struct value raw;
    enum cause cause = source_value(&rule->exprs[field->at], in, &raw);
    if (cause != CAUSE_NONE)
        return cause;
    if (is_absent(&raw)) {
        *ret = field->fallback;
        return field->has_default ? CAUSE_NONE : CAUSE_FIELD_MISSING;
    }
    if (raw.tag == VALUE_TEXT && raw.text.len == 0 && !field->has_default)
        return CAUSE_FIELD_MISSING;
    switch (field->type) {
    case FIELD_TEXT: return typed_text(&raw, ret);
    case FIELD_INTEGER: return typed_integer(&raw, ret);
    case FIELD_DECIMAL: return typed_decimal(rule, field, in, &raw, ret);
    case FIELD_TIME: return typed_time(field, in, &raw, ret);
    }
    return CAUSE_FIELD_TYPE;
}
