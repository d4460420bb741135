/* SPDX-License-Identifier: MIT */
/* field: the typed fields of a rule, with minor units, time formats and checked defaults. */
#include "rule_bind.h"

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

struct field_target {
    const struct yaml_node *at, *minor, *fallback, *format, *zone;
    int type;
    uint16_t scale;
};

static const struct word types[] = {
    {"text", FIELD_TEXT}, {"integer", FIELD_INTEGER}, {"decimal", FIELD_DECIMAL}, {"time", FIELD_TIME}, {NULL, 0}};

static const struct option field_options[] = {
    {.name = "at", .kind = OPTION_NODE, .offset = offsetof(struct field_target, at), .required = true},
    {.name = "type", .kind = OPTION_WORD, .offset = offsetof(struct field_target, type), .words = types,
     .fallback = "text"},
    {.name = "scale", .kind = OPTION_NUMBER, .width = 2, .offset = offsetof(struct field_target, scale), .min = 0,
     .max = DECIMAL_SCALE_MAX, .fallback = "0"},
    {.name = "minor", .kind = OPTION_NODE, .offset = offsetof(struct field_target, minor)},
    {.name = "default", .kind = OPTION_NODE, .offset = offsetof(struct field_target, fallback)},
    {.name = "format", .kind = OPTION_NODE, .offset = offsetof(struct field_target, format)},
    {.name = "zone", .kind = OPTION_NODE, .offset = offsetof(struct field_target, zone)},
};

static bool digits_bind(struct rule_binder *rb, const struct yaml_node *node, uint8_t *ret)
{
    struct bytes text;
    uint64_t number;
    if (!scalar_text(rb->b, node, false, &text))
        return false;
    if (!number_parse(text, &number) || number > 9)
        return mistake(rb->b, node, "\"%s\" is not a number of digits (0..9)", quote(node->text).text);
    *ret = (uint8_t)number;
    return true;
}

static void minor_table_bind(struct rule_binder *rb, const struct yaml_node *node, struct field *field)
{
    struct bytes name;
    const struct yaml_node *value;
    uint32_t index = 0, count = 0;
    struct minor_unit *units = binder_array(rb->b, node->count / 2, sizeof *units);
    while (units && map_next(rb->b, node, &index, &name, &value)) {
        size_t mark = path_enter_bytes(rb->b, name);
        if (bytes_equal(name, BYTES_LIT("by"))) {
            field->minor_by = expr_bind(rb, value, PLACE_NO_NOW | PLACE_NO_LITERAL | PLACE_NO_FIELD);
        } else if (bytes_equal(name, BYTES_LIT("default"))) {
            field->has_minor_default = digits_bind(rb, value, &field->minor_default);
        } else {
            units[count].literal = name;
            count += digits_bind(rb, value, &units[count].digits);
        }
        path_leave(rb->b, mark);
    }
    if (field->minor_by == NO_EXPR)
        mistake(rb->b, node, "needs `by`: where the currency stands");
    field->minor_units = units;
    field->minor_count = count;
}

static void minor_bind(struct rule_binder *rb, const struct yaml_node *node, struct field *field)
{
    size_t mark = path_enter(rb->b, "minor");
    field->minor = true;
    if (field->type != FIELD_DECIMAL)
        mistake(rb->b, node, "is for type decimal only");
    if (node->kind == YAML_MAPPING)
        minor_table_bind(rb, node, field);
    else
        digits_bind(rb, node, &field->minor_digits);
    path_leave(rb->b, mark);
}

static void format_bind(struct rule_binder *rb, const struct yaml_node *node, struct field *field)
{
    struct bytes text;
    size_t mark = path_enter(rb->b, "format");
    if (scalar_text(rb->b, node, false, &text)) {
        if (bytes_equal(text, BYTES_LIT("rfc3339")))
            field->format = TIME_RFC3339;
        else if (bytes_equal(text, BYTES_LIT("unix")))
            field->format = TIME_UNIX;
        else if (bytes_equal(text, BYTES_LIT("unix_ms")))
            field->format = TIME_UNIX_MS;
        else if (memchr(text.at, '%', text.len))
            field->format = TIME_STRPTIME;
        else
            mistake(rb->b, node, "\"%s\" is none of rfc3339, unix, unix_ms or a strptime text such as "
                    "\"%%Y-%%m-%%d %%H:%%M:%%S\"", quote(node->text).text);
        field->pattern = text;
    }
    path_leave(rb->b, mark);
}

static void zone_bind(struct rule_binder *rb, const struct yaml_node *node, struct field *field)
{
    struct bytes text;
    size_t mark = path_enter(rb->b, "zone");
    struct time_zone *zone = binder_array(rb->b, 1, sizeof *zone);
    if (zone && scalar_text(rb->b, node, false, &text)) {
        if (!time_zone_fixed(text, zone) &&
            !rb->b->lookup->zone(rb->b->lookup->context, text, rb->b->arena, zone))
            mistake(rb->b, node, "\"%s\" is neither an offset (+08:00) nor a zone that this machine knows",
                    quote(node->text).text);
        field->zone = zone;
    }
    path_leave(rb->b, mark);
}

/* Typed as a value of the record would be. */
static void default_bind(struct rule_binder *rb, const struct yaml_node *node, struct field *field)
{
    struct bytes text;
    enum cause cause = CAUSE_NONE;
    size_t mark = path_enter(rb->b, "default");
    struct value *value = &field->fallback;
    field->has_default = true;
    if (scalar_text(rb->b, node, false, &text)) {
        *value = (struct value){.tag = (enum value_tag)(VALUE_TEXT + (int)field->type), .text = text};
        switch (field->type) {
        case FIELD_TEXT:
            break;
        case FIELD_INTEGER:
            cause = integer_is_canonical(text) ? CAUSE_NONE : CAUSE_FIELD_TYPE;
            break;
        case FIELD_DECIMAL:
            cause = decimal_parse(text, field->scale, field->minor_digits, rb->b->arena, &value->text);
            break;
        case FIELD_TIME:
            value->tag = VALUE_TIME;
            cause = time_parse(text, field->format, field->pattern, field->zone, rb->b->arena, &value->text);
            break;
        }
        if (cause != CAUSE_NONE)
            mistake(rb->b, node, "\"%s\" does not fit the field's type (%s)", quote(node->text).text,
                    cause_name(cause));
    }
    path_leave(rb->b, mark);
}

static bool field_name_is_valid(struct rule_binder *rb, const struct yaml_node *node, struct bytes name)
{
    if (!word_is_valid(name, 64) || bytes_equal(name, BYTES_LIT("now")))
        return mistake(rb->b, node, "is not a name of a field ([A-Za-z0-9_.-], not now)");
    return true;
}

static void field_bind(struct rule_binder *rb, const struct yaml_node *node, struct field *field)
{
    struct field_target target = {0};
    section_bind(rb->b, node, field_options, COUNT_OF(field_options), &target);
    field->type = (enum field_type)target.type;
    field->scale = (uint8_t)target.scale;
    field->minor_by = NO_EXPR;
    field->at = expr_part(rb, "at", target.at, PLACE_NO_NOW | PLACE_NO_LITERAL | PLACE_NO_FIELD);
    if (target.minor)
        minor_bind(rb, target.minor, field);
    if (target.format)
        format_bind(rb, target.format, field);
    if (target.zone)
        zone_bind(rb, target.zone, field);
    if (target.fallback)
        default_bind(rb, target.fallback, field);
}

void fields_bind(struct rule_binder *rb, const struct yaml_node *node)
{
    struct bytes name;
    const struct yaml_node *value;
    uint32_t index = 0, count = 0;
    if (!is_mapping(rb->b, node))
        return;
    struct field *list = binder_array(rb->b, node->count / 2, sizeof *list);
    while (list && map_next(rb->b, node, &index, &name, &value)) {
        size_t mark = path_enter_bytes(rb->b, name);
        field_name_is_valid(rb, node->children[index - 2], name);
        list[count].name = name;
        field_bind(rb, value, &list[count++]);
        path_leave(rb->b, mark);
    }
    rb->fields = list;
    rb->field_count = count;
    rb->rule->fields = list;
    rb->rule->field_count = count;
}
