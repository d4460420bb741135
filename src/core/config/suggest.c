/* SPDX-License-Identifier: MIT */
/* suggest: the known name that a mistyped one was meant to be. */
#include "binder.h"

enum { NAME_MAX_BYTES = 48 };

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Edits between the two names: insert, delete, replace, and swap of neighbours. Both at most NAME_MAX_BYTES. */
static uint32_t distance(struct bytes a, struct bytes b)
{
    uint32_t row[3][NAME_MAX_BYTES + 1];
    for (uint32_t j = 0; j <= b.len; j++)
        row[1][j] = j;
    for (uint32_t i = 1; i <= a.len; i++) {
        uint32_t *now = row[(i + 1) % 3], *last = row[i % 3], *before = row[(i + 2) % 3];
        now[0] = i;
        for (uint32_t j = 1; j <= b.len; j++) {
            uint32_t cost = a.at[i - 1] == b.at[j - 1] ? 0 : 1;
            now[j] = least(least(now[j - 1], last[j]) + 1, last[j - 1] + cost);
            if (i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] && a.at[i - 2] == b.at[j - 1])
                now[j] = least(now[j], before[j - 2] + 1);
        }
    }
    return row[(a.len + 1) % 3][b.len];
}

const char *suggest(struct bytes name, const char *const *names, uint32_t count)
{
    const char *best = NULL;
    uint32_t best_distance = UINT32_MAX;
    if (name.len == 0 || name.len > NAME_MAX_BYTES)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct bytes known = bytes_text(names[i]);
        if (known.len > NAME_MAX_BYTES)
            continue;
        uint32_t found = distance(name, known);
        /* a third of the name may be wrong, more is another word */
        if (found < best_distance && found <= 1 + least((uint32_t)known.len, (uint32_t)name.len) / 3) {
            best = names[i];
            best_distance = found;
        }
    }
    return best;
}
