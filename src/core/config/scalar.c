/* SPDX-License-Identifier: MIT */
/* scalar: texts with ${VAR}, numbers, durations, sizes, and the shapes of names. */
#include "binder.h"

static bool is_null(const struct yaml_node *node)
{
    return node->plain && (node->text.len == 0 || bytes_equal(node->text, BYTES_LIT("~")) ||
                           bytes_equal_nocase(node->text, BYTES_LIT("null")));
}

static bool is_letter(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

/* Length of a leading ${NAME}, 0 if there is none. */
static size_t variable_length(struct bytes text)
{
    if (text.len < 4 || text.at[0] != '$' || text.at[1] != '{')
        return 0;
    size_t at = 2;
    while (at < text.len && (is_letter(text.at[at]) || text.at[at] == '_' || (at > 2 && is_digit(text.at[at]))))
        at++;
    return at > 2 && at < text.len && text.at[at] == '}' ? at + 1 : 0;
}

static bool variable_replace(struct binder *b, const struct yaml_node *node, size_t len, struct bytes *ret)
{
    char name[128];
    if (len - 3 >= sizeof(name))
        return mistake(b, node, "the variable's name is too long");
    memcpy(name, node->text.at + 2, len - 3);
    name[len - 3] = 0;
    const char *value = b->lookup->variable(b->lookup->context, name);
    if (!value)
        return mistake(b, node, "environment variable %s is not set", name);
    size_t value_len = strlen(value), rest = node->text.len - len;
    uint8_t *made = arena_alloc(b->arena, value_len + rest + 1);
    if (!made)
        return false;
    memcpy(made, value, value_len);
    if (rest > 0)
        memcpy(made + value_len, node->text.at + len, rest);
    *ret = bytes_of(made, value_len + rest);
    if (!bytes_is_utf8(*ret))
        return mistake(b, node, "environment variable %s is not UTF-8", name);
    return true;
}

bool scalar_text(struct binder *b, const struct yaml_node *node, bool is_path, struct bytes *ret)
{
    if (node->kind != YAML_SCALAR)
        return mistake(b, node, "must be a single value");
    if (is_null(node))
        return mistake(b, node, "has no value (an empty text is written \"\")");
    if (node->text.len > 0 && memchr(node->text.at, 0, node->text.len))
        return mistake(b, node, "must not contain a NUL character");
    if (node->text.len == 0 || !memmem(node->text.at, node->text.len, "${", 2)) {
        *ret = arena_copy(b->arena, node->text);
        return ret->at != NULL;
    }
    size_t len = variable_length(node->text);
    bool whole = len > 0 && len == node->text.len;
    bool leading = is_path && len > 0 && len < node->text.len && node->text.at[len] == '/' &&
                   !memmem(node->text.at + len, node->text.len - len, "${", 2);
    if (!whole && !leading)
        return mistake(b, node, "${NAME} must be the whole value%s", is_path ? " or stand before a /" : "");
    return variable_replace(b, node, len, ret);
}

bool scalar_texts(struct binder *b, const struct yaml_node *node, uint32_t max, const struct bytes **ret,
                  uint32_t *ret_count)
{
    uint32_t count;
    const struct yaml_node *const *items = list_items(b, &node, max, &count);
    *ret = NULL;
    *ret_count = 0;
    if (!items)
        return false;
    if (count == 0)
        return mistake(b, node, "must not be empty");
    struct bytes *list = binder_array(b, count, sizeof(*list));
    if (!list)
        return false;
    bool good = true;
    for (uint32_t i = 0; i < count; i++)
        good = scalar_text(b, items[i], false, &list[i]) && good;
    if (good) {
        *ret = list;
        *ret_count = count;
    }
    return good;
}

bool scalar_bool(struct binder *b, const struct yaml_node *node, bool *ret)
{
    struct bytes text;
    if (!scalar_text(b, node, false, &text))
        return false;
    if (bytes_equal(text, BYTES_LIT("true")))
        *ret = true;
    else if (bytes_equal(text, BYTES_LIT("false")))
        *ret = false;
    else
        return mistake(b, node, "\"%s\" is neither true nor false", quote(node->text).text);
    return true;
}

/* Leading digits; false if there are none or they do not fit. */
static bool digits_parse(struct bytes text, size_t *ret_len, uint64_t *ret)
{
    uint64_t number = 0;
    size_t at = 0;
    for (; at < text.len && is_digit(text.at[at]); at++)
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text.at[at] - '0'), &number))
            return false;
    *ret_len = at;
    *ret = number;
    return at > 0;
}

bool number_parse(struct bytes text, uint64_t *ret)
{
    size_t len;
    uint64_t number;
    if (!digits_parse(text, &len, &number) || len != text.len)
        return false;
    *ret = number;
    return true;
}

struct unit {
    const char *name;
    uint64_t factor;
};

static bool unit_parse(struct bytes text, const struct unit *units, size_t count, uint64_t *ret)
{
    size_t len;
    uint64_t number;
    if (!digits_parse(text, &len, &number))
        return false;
    struct bytes unit = bytes_of(text.at + len, text.len - len);
    for (size_t i = 0; i < count; i++)
        if (bytes_equal(unit, bytes_text(units[i].name))) {
            if (__builtin_mul_overflow(number, units[i].factor, &number))
                return false;
            *ret = number;
            return true;
        }
    return false;
}

bool duration_parse(struct bytes text, uint64_t *ret_ms)
{
    static const struct unit units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    return unit_parse(text, units, sizeof(units) / sizeof(units[0]), ret_ms);
}

bool size_parse(struct bytes text, uint64_t *ret_bytes)
{
    static const struct unit units[] = {{"KiB", 1024}, {"MiB", 1024 * 1024}};
    return unit_parse(text, units, sizeof(units) / sizeof(units[0]), ret_bytes);
}

bool column_name_is_valid(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_letter(name.at[i]) && !is_digit(name.at[i]) && name.at[i] != '_' && name.at[i] != '$')
            return false;
    return name.len > 0 && name.len <= COLUMN_NAME_MAX;
}

bool table_name_is_valid(struct bytes name)
{
    const uint8_t *point = name.len ? memchr(name.at, '.', name.len) : NULL;
    if (!point)
        return column_name_is_valid(name);
    size_t len = (size_t)(point - name.at);
    return column_name_is_valid(bytes_of(name.at, len)) &&
           column_name_is_valid(bytes_of(point + 1, name.len - len - 1));
}

bool word_is_valid(struct bytes name, size_t max)
{
    for (size_t i = 0; i < name.len; i++)
        if (!is_letter(name.at[i]) && !is_digit(name.at[i]) && !memchr("_.-", name.at[i], 3))
            return false;
    return name.len > 0 && name.len <= max;
}

bool topic_name_is_valid(struct bytes name)
{
    return word_is_valid(name, TOPIC_MAX) && !bytes_equal(name, BYTES_LIT(".")) &&
           !bytes_equal(name, BYTES_LIT(".."));
}
