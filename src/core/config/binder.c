/* SPDX-License-Identifier: MIT */
/* binder: the place in the file, the list of mistakes, the walk over mappings and lists. Pure: memory comes from the
 * caller's arena, the outside is asked through config_lookup. */
#include "binder.h"

#include <stdarg.h>
#include <stdio.h>

static char clean(uint8_t c)
{
    return c < 0x20 || c == 0x7f ? '?' : (char)c;
}

/* Cuts before a character that would be halved. */
static size_t utf8_floor(const char *text, size_t len)
{
    while (len > 0 && ((uint8_t)text[len] & 0xc0) == 0x80)
        len--;
    return len;
}

static void text_keep(char *target, size_t size, const char *text)
{
    size_t len = strlen(text);
    if (len >= size)
        len = utf8_floor(text, size - 1);
    memcpy(target, text, len);
    target[len] = 0;
}

static bool comes_before(const struct diagnostic *a, const struct diagnostic *b)
{
    if (a->line != b->line)
        return a->line < b->line;
    return a->column < b->column;
}

void diagnostics_add(struct diagnostics *diagnostics, uint32_t line, uint32_t column, const char *path,
                     const char *message)
{
    struct diagnostic fresh = {.line = line, .column = column};
    text_keep(fresh.path, sizeof(fresh.path), path);
    text_keep(fresh.message, sizeof(fresh.message), message);
    uint32_t kept = diagnostics->count < diagnostics->size ? diagnostics->count : diagnostics->size;
    uint32_t at = kept;
    while (at > 0 && comes_before(&fresh, &diagnostics->list[at - 1]))
        at--;
    diagnostics->count++;
    if (at >= diagnostics->size)
        return;
    uint32_t moved = kept - at;
    if (kept == diagnostics->size)
        moved--;
    memmove(&diagnostics->list[at + 1], &diagnostics->list[at], moved * sizeof(fresh));
    diagnostics->list[at] = fresh;
}

void diagnostic_write(const struct diagnostic *diagnostic, struct bytes file, struct buf *buf)
{
    buf_bytes(buf, file);
    if (diagnostic->line > 0)
        buf_printf(buf, ":%u:%u", (unsigned)diagnostic->line, (unsigned)diagnostic->column);
    if (diagnostic->path[0])
        buf_printf(buf, ": %s", diagnostic->path);
    buf_printf(buf, ": %s", diagnostic->message);
}

static void path_put(struct binder *b, char c)
{
    if (b->path_len + 1 < PATH_BYTES)
        b->path[b->path_len++] = c;
    b->path[b->path_len] = 0;
}

size_t path_enter_bytes(struct binder *b, struct bytes name)
{
    size_t mark = b->path_len;
    if (mark > 0)
        path_put(b, '.');
    for (size_t i = 0; i < name.len; i++)
        path_put(b, clean(name.at[i]));
    return mark;
}

size_t path_enter(struct binder *b, const char *name)
{
    return path_enter_bytes(b, bytes_text(name));
}

size_t path_enter_index(struct binder *b, uint32_t index)
{
    size_t mark = b->path_len;
    char text[16];
    snprintf(text, sizeof(text), "[%u]", (unsigned)index);
    for (size_t i = 0; text[i]; i++)
        path_put(b, text[i]);
    return mark;
}

void path_leave(struct binder *b, size_t mark)
{
    b->path_len = mark;
    b->path[mark] = 0;
}

bool mistake(struct binder *b, const struct yaml_node *node, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    b->mistakes++;
    diagnostics_add(b->diagnostics, node ? node->line : 0, node ? node->column : 0, b->path, text);
    return false;
}

void *binder_array(struct binder *b, size_t count, size_t size)
{
    return arena_calloc(b->arena, count ? count : 1, size);
}

struct quote quote(struct bytes text)
{
    struct quote made = {{0}};
    size_t len = text.len;
    const char *tail = "";
    if (len > 60) {
        len = 57;
        while (len > 0 && (text.at[len] & 0xc0) == 0x80)
            len--;
        tail = "...";
    }
    for (size_t i = 0; i < len; i++)
        made.text[i] = clean(text.at[i]);
    memcpy(made.text + len, tail, strlen(tail));
    return made;
}

bool is_mapping(struct binder *b, const struct yaml_node *node)
{
    if (node->kind != YAML_MAPPING)
        return mistake(b, node, "must be a mapping (name: value)");
    if (node->count / 2 > ENTRIES_MAX)
        return mistake(b, node, "has more than %d entries", ENTRIES_MAX);
    return true;
}

static const struct yaml_node *earlier_key(const struct yaml_node *node, uint32_t index)
{
    for (uint32_t i = 0; i < index; i += 2)
        if (node->children[i]->kind == YAML_SCALAR &&
            bytes_equal(node->children[i]->text, node->children[index]->text))
            return node->children[i];
    return NULL;
}

bool map_next(struct binder *b, const struct yaml_node *node, uint32_t *index, struct bytes *ret_key,
              const struct yaml_node **ret_value)
{
    while (*index + 1 < node->count) {
        uint32_t at = *index;
        *index += 2;
        const struct yaml_node *key = node->children[at];
        if (key->kind != YAML_SCALAR || key->text.len == 0 ||
            memchr(key->text.at, 0, key->text.len) != NULL) {
            mistake(b, key, "a key must be a text that is not empty");
            continue;
        }
        const struct yaml_node *first = earlier_key(node, at);
        if (first) {
            size_t mark = path_enter_bytes(b, key->text);
            mistake(b, key, "repeated key, first on line %u", (unsigned)first->line);
            path_leave(b, mark);
            continue;
        }
        *ret_key = arena_copy(b->arena, key->text);
        if (ret_key->at == NULL)
            return false;
        *ret_value = node->children[at + 1];
        return true;
    }
    return false;
}

const struct yaml_node *const *list_items(struct binder *b, const struct yaml_node *const *node, uint32_t max,
                                          uint32_t *ret_count)
{
    const struct yaml_node *list = *node;
    *ret_count = 0;
    if (list->kind == YAML_SCALAR) {
        *ret_count = 1;
        return node;
    }
    if (list->kind != YAML_SEQUENCE) {
        mistake(b, list, "must be a list");
        return NULL;
    }
    if (list->count > max) {
        mistake(b, list, "has more than %u entries", (unsigned)max);
        return NULL;
    }
    *ret_count = list->count;
    return list->children;
}

const struct yaml_node *map_find(const struct yaml_node *node, const char *name)
{
    if (node->kind != YAML_MAPPING)
        return NULL;
    for (uint32_t i = 0; i + 1 < node->count; i += 2)
        if (node->children[i]->kind == YAML_SCALAR && bytes_equal(node->children[i]->text, bytes_text(name)))
            return node->children[i + 1];
    return NULL;
}
