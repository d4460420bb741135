/* SPDX-License-Identifier: MIT */
/* option: one row per option says name, type, range and default; this file reads a section by such a table. */
#include "binder.h"

#include <stdio.h>

struct range_text {
    char text[96];
};

static void amount_put(struct buf *buf, enum option_kind kind, uint64_t amount)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } times[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    if (kind == OPTION_DURATION && amount == 0) {
        buf_text(buf, "0s");
    } else if (kind == OPTION_DURATION) {
        size_t i = 0;
        while (amount % times[i].factor != 0)
            i++;
        buf_uint(buf, amount / times[i].factor);
        buf_text(buf, times[i].name);
    } else if (kind == OPTION_SIZE && amount % (1024 * 1024) == 0) {
        buf_uint(buf, amount / (1024 * 1024));
        buf_text(buf, "MiB");
    } else if (kind == OPTION_SIZE) {
        buf_uint(buf, amount / 1024);
        buf_text(buf, "KiB");
    } else {
        buf_uint(buf, amount);
    }
}

/* "(1s..60s, default 3s)" */
static struct range_text range(const struct option *option)
{
    struct range_text made = {{0}};
    struct buf buf;
    buf_init(&buf, made.text, sizeof(made.text) - 1);
    buf_char(&buf, '(');
    amount_put(&buf, option->kind, option->min);
    buf_text(&buf, "..");
    amount_put(&buf, option->kind, option->max);
    if (option->fallback) {
        buf_text(&buf, ", default ");
        buf_text(&buf, option->fallback);
    }
    buf_char(&buf, ')');
    return made;
}

static bool amount_parse(enum option_kind kind, struct bytes text, uint64_t *ret)
{
    if (kind == OPTION_DURATION)
        return duration_parse(text, ret);
    if (kind == OPTION_SIZE)
        return size_parse(text, ret);
    return number_parse(text, ret);
}

static const char *amount_name(enum option_kind kind)
{
    if (kind == OPTION_DURATION)
        return "a duration like 300ms, 5s, 10m, 72h, 30d";
    if (kind == OPTION_SIZE)
        return "a size like 512KiB, 4MiB";
    return "a whole number";
}

static void amount_store(const struct option *option, uint64_t amount, void *target)
{
    uint8_t *at = (uint8_t *)target + option->offset;
    uint16_t two = (uint16_t)amount;
    uint32_t four = (uint32_t)amount;
    if (option->width == 2)
        memcpy(at, &two, sizeof(two));
    else if (option->width == 4)
        memcpy(at, &four, sizeof(four));
    else
        memcpy(at, &amount, sizeof(amount));
}

static void amount_bind(struct binder *b, const struct yaml_node *node, const struct option *option, void *target)
{
    struct bytes text;
    uint64_t amount;
    if (!scalar_text(b, node, false, &text))
        return;
    if (!amount_parse(option->kind, text, &amount))
        mistake(b, node, "\"%s\" is not %s %s", quote(node->text).text, amount_name(option->kind),
                range(option).text);
    else if (amount < option->min || amount > option->max)
        mistake(b, node, "%s is out of range %s", quote(node->text).text, range(option).text);
    else
        amount_store(option, amount, target);
}

static void word_store(const struct option *option, int number, void *target)
{
    memcpy((uint8_t *)target + option->offset, &number, sizeof(number));
}

static void word_bind(struct binder *b, const struct yaml_node *node, const struct option *option, void *target)
{
    struct bytes text;
    char list[160];
    struct buf buf;
    if (!scalar_text(b, node, false, &text))
        return;
    buf_init(&buf, list, sizeof(list) - 1);
    for (const struct word *word = option->words; word->name; word++) {
        if (bytes_equal(text, bytes_text(word->name))) {
            word_store(option, word->number, target);
            return;
        }
        buf_printf(&buf, "%s%s", buf.len ? ", " : "", word->name);
    }
    list[buf.len] = 0;
    if (option->fallback)
        mistake(b, node, "\"%s\" is none of %s (default %s)", quote(node->text).text, list, option->fallback);
    else
        mistake(b, node, "\"%s\" is none of %s", quote(node->text).text, list);
}

/* The same text, or the same duration or size in other words (600s is 10m). */
static bool means_the_same(struct bytes a, struct bytes b)
{
    uint64_t x, y;
    if (bytes_equal(a, b))
        return true;
    return (duration_parse(a, &x) && duration_parse(b, &y) && x == y) ||
           (size_parse(a, &x) && size_parse(b, &y) && x == y);
}

static void later_bind(struct binder *b, const struct yaml_node *node, const struct option *option)
{
    struct bytes text;
    if (!option->accepted[0]) {
        mistake(b, node, "not supported yet");
        return;
    }
    if (!scalar_text(b, node, false, &text))
        return;
    for (size_t i = 0; i < 3 && option->accepted[i]; i++)
        if (means_the_same(text, bytes_text(option->accepted[i])))
            return;
    if (option->accepted[1])
        mistake(b, node, "\"%s\" is not supported yet, only \"%s\" or \"%s\" is", quote(node->text).text,
                option->accepted[0], option->accepted[1]);
    else
        mistake(b, node, "\"%s\" is not supported yet, only \"%s\" is", quote(node->text).text,
                option->accepted[0]);
}

static void text_bind(struct binder *b, const struct yaml_node *node, const struct option *option, void *target)
{
    struct bytes text;
    if (!scalar_text(b, node, option->kind == OPTION_PATH, &text))
        return;
    if (option->nonempty && text.len == 0)
        mistake(b, node, "must not be empty");
    else
        memcpy((uint8_t *)target + option->offset, &text, sizeof(text));
}

static void option_bind(struct binder *b, const struct yaml_node *node, const struct option *option, void *target)
{
    bool yes;
    switch (option->kind) {
    case OPTION_TEXT:
    case OPTION_PATH:
        text_bind(b, node, option, target);
        break;
    case OPTION_NUMBER:
    case OPTION_DURATION:
    case OPTION_SIZE:
        amount_bind(b, node, option, target);
        break;
    case OPTION_BOOL:
        if (scalar_bool(b, node, &yes))
            memcpy((uint8_t *)target + option->offset, &yes, sizeof(yes));
        break;
    case OPTION_WORD:
        word_bind(b, node, option, target);
        break;
    case OPTION_NODE:
        memcpy((uint8_t *)target + option->offset, &node, sizeof(node));
        break;
    case OPTION_LATER:
        later_bind(b, node, option);
        break;
    }
}

/* The row's own default is well-formed: the unit suite loads a file without options. */
static void default_store(const struct option *option, void *target)
{
    struct bytes text = bytes_text(option->fallback);
    uint64_t amount;
    if (!option->fallback)
        return;
    if (option->kind == OPTION_TEXT || option->kind == OPTION_PATH)
        memcpy((uint8_t *)target + option->offset, &text, sizeof(text));
    else if (option->kind == OPTION_WORD) {
        for (const struct word *word = option->words; word->name; word++)
            if (bytes_equal(text, bytes_text(word->name)))
                word_store(option, word->number, target);
    } else if (amount_parse(option->kind, text, &amount))
        amount_store(option, amount, target);
}

static void unknown_tell(struct binder *b, const struct yaml_node *key, const struct option *options,
                         uint32_t count)
{
    const char *names[OPTIONS_MAX];
    for (uint32_t i = 0; i < count; i++)
        names[i] = options[i].name;
    const char *near = suggest(key->text, names, count);
    size_t mark = path_enter_bytes(b, key->text);
    if (near)
        mistake(b, key, "unknown key, did you mean \"%s\"?", near);
    else
        mistake(b, key, "unknown key");
    path_leave(b, mark);
}

void section_bind(struct binder *b, const struct yaml_node *node, const struct option *options, uint32_t count,
                  void *target)
{
    bool seen[OPTIONS_MAX] = {false};
    struct bytes key;
    const struct yaml_node *value;
    uint32_t index = 0;

    for (uint32_t i = 0; i < count; i++)
        default_store(&options[i], target);
    if (node && !is_mapping(b, node))
        return;
    while (node && map_next(b, node, &index, &key, &value)) {
        uint32_t i = 0;
        while (i < count && !bytes_equal(key, bytes_text(options[i].name)))
            i++;
        if (i == count) {
            unknown_tell(b, node->children[index - 2], options, count);
            continue;
        }
        seen[i] = true;
        size_t mark = path_enter(b, options[i].name);
        option_bind(b, value, &options[i], target);
        path_leave(b, mark);
    }
    for (uint32_t i = 0; i < count; i++)
        if (options[i].required && !seen[i]) {
            size_t mark = path_enter(b, options[i].name);
            mistake(b, node, "is required");
            path_leave(b, mark);
        }
}
