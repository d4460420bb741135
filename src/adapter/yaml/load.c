/* SPDX-License-Identifier: MIT */
/* load: a configuration from its file: reading, parsing, binding, and what the binder asks of this process. */
#include "idem/adapter/config_load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILE_MAX = 4 << 20, ARENA_SIZE = 256 << 20, ZONE_FILE_MAX = 64 << 10 };

/* The configuration lies in its own arena; the block is one lazily filled mapping. */
struct loaded {
    struct config config;
    void *block;
};

static const char *variable(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

/* ---- time zones (TZif, RFC 9636) --------------------------------------------------------------------------------- */

static int64_t big(const uint8_t *at, int len)
{
    int64_t number = at[0] & 0x80 ? -1 : 0;
    for (int i = 0; i < len; i++)
        number = (int64_t)((uint64_t)number << 8 | at[i]);
    return number;
}

struct tzif {
    const uint8_t *at;
    int64_t times, types, leaps, standards, uts, letters;
};

static bool tzif_header(struct bytes file, size_t from, struct tzif *ret)
{
    if (file.len < from + 44 || memcmp(file.at + from, "TZif", 4) != 0)
        return false;
    const uint8_t *at = file.at + from;
    *ret = (struct tzif){at + 44, big(at + 32, 4), big(at + 36, 4), big(at + 28, 4), big(at + 24, 4),
                         big(at + 20, 4), big(at + 40, 4)};
    return ret->times >= 0 && ret->types > 0 && ret->times < 10000 && ret->types < 256;
}

static size_t tzif_size(const struct tzif *tz, int width)
{
    return (size_t)(tz->times * width + tz->times + tz->types * 6 + tz->letters + tz->leaps * (width + 4) +
                    tz->standards + tz->uts);
}

/* The second, 64-bit block. Rules beyond its last transition are not followed: the last offset goes on. */
static bool tzif_read(struct bytes file, struct arena *arena, struct time_zone *ret)
{
    struct tzif tz;
    if (!tzif_header(file, 0, &tz) || file.at[4] < '2')
        return false;
    size_t second = 44 + tzif_size(&tz, 4);
    if (!tzif_header(file, second, &tz) || file.len < second + 44 + tzif_size(&tz, 8))
        return false;
    const uint8_t *index = tz.at + tz.times * 8, *types = index + tz.times;
    struct time_zone_transition *list = arena_calloc(arena, (size_t)tz.times + 1, sizeof *list);
    if (!list)
        return false;
    for (int64_t i = 0; i < tz.times; i++) {
        if (index[i] >= tz.types)
            return false;
        list[i] = (struct time_zone_transition){big(tz.at + i * 8, 8), (int32_t)big(types + index[i] * 6, 4)};
    }
    *ret = (struct time_zone){(int32_t)big(types, 4), list, (size_t)tz.times};
    return true;
}

static bool zone(void *context, struct bytes name, struct arena *arena, struct time_zone *ret)
{
    char path[256];
    static uint8_t content[ZONE_FILE_MAX];
    (void)context;
    if (name.len == 0 || name.len > 100 || name.at[0] == '/' || memmem(name.at, name.len, "..", 2))
        return false;
    snprintf(path, sizeof path, "/usr/share/zoneinfo/%.*s", (int)name.len, (const char *)name.at);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t len = fread(content, 1, sizeof content, file);
    fclose(file);
    return tzif_read(bytes_of(content, len), arena, ret);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

bool config_text_load(struct bytes text, const char *name, struct config **ret, struct diagnostics *mistakes)
{
    static const struct config_lookup lookup = {.variable = variable, .zone = zone};
    const struct yaml_node *root = NULL;
    struct arena arena;
    struct loaded *loaded = calloc(1, sizeof *loaded);
    size_t size = 1024 * 1024 + text.len * 512;
    void *block = loaded ? malloc(size < ARENA_SIZE ? size : ARENA_SIZE) : NULL;
    if (!block) {
        free(loaded);
        diagnostics_add(mistakes, 0, 0, "", "out of memory");
        return false;
    }
    loaded->block = block;
    arena_init(&arena, block, size < ARENA_SIZE ? size : ARENA_SIZE);
    if (!yaml_parse(text, &arena, &root, mistakes) ||
        !config_bind(root, bytes_text(name), &lookup, &arena, &loaded->config, mistakes)) {
        config_free(&loaded->config);
        return false;
    }
    *ret = &loaded->config;
    return true;
}

bool config_file_load(const char *path, struct config **ret, struct diagnostics *mistakes)
{
    char message[256];
    FILE *file = fopen(path, "re");
    uint8_t *text = file ? malloc(FILE_MAX + 1) : NULL;
    if (!text) {
        snprintf(message, sizeof message, "cannot read: %s", strerror(errno));
        diagnostics_add(mistakes, 0, 0, "", message);
        if (file)
            fclose(file);
        return false;
    }
    size_t len = fread(text, 1, FILE_MAX + 1, file);
    bool unreadable = ferror(file) != 0;
    fclose(file);
    bool good = false;
    if (unreadable || len > FILE_MAX)
        diagnostics_add(mistakes, 0, 0, "", unreadable ? "cannot be read" : "is larger than 4 MiB");
    else
        good = config_text_load(bytes_of(text, len), path, ret, mistakes);
    free(text);
    return good;
}

void config_free(struct config *config)
{
    struct loaded *loaded = (struct loaded *)(void *)config;
    if (!loaded)
        return;
    free(loaded->block);
    free(loaded);
}
