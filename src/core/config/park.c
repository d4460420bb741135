/* SPDX-License-Identifier: MIT */
/* park: how long records of a rule wait, and how often they are tried (design section 6, `park`). A rule without the
 * section waits as the manual shows. */
#include "rule_bind.h"

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

enum { SECOND = 1000, MINUTE = 60000, DAY = 86400000 };

struct park_target {
    struct park_config park;
    const struct yaml_node *backoff;
};

#define DURATION(field, key, least, most, text) \
    {.name = key, .kind = OPTION_DURATION, .width = 8, .offset = offsetof(struct park_target, park.field), \
     .min = least, .max = most, .fallback = text}

static const struct option park_options[] = {
    DURATION(for_ms, "for", 0, 365ull * DAY, "10m"),
    {.name = "attempts", .kind = OPTION_NUMBER, .width = 4, .offset = offsetof(struct park_target, park.attempts),
     .min = 1, .max = 100000, .fallback = "8"},
    {.name = "backoff", .kind = OPTION_NODE, .offset = offsetof(struct park_target, backoff)},
    DURATION(locked_after_ms, "locked_after", 0, 365ull * DAY, "30s"),
};

static void step_bind(struct rule_binder *rb, const struct yaml_node *node, uint64_t *ret)
{
    struct bytes text;
    if (!scalar_text(rb->b, node, false, &text))
        return;
    if (!duration_parse(text, ret) || *ret < 100 || *ret > DAY)
        mistake(rb->b, node, "\"%s\" is not a duration of 100ms..1d", quote(text).text);
}

/* [first, most] */
static void backoff_bind(struct rule_binder *rb, const struct yaml_node *node, struct park_config *park)
{
    size_t mark = path_enter(rb->b, "backoff");
    if (node->kind != YAML_SEQUENCE || node->count != 2) {
        mistake(rb->b, node, "must be two durations: [first, most] (default [1s, 60s])");
    } else {
        step_bind(rb, node->children[0], &park->backoff_base_ms);
        step_bind(rb, node->children[1], &park->backoff_cap_ms);
        if (park->backoff_base_ms > park->backoff_cap_ms)
            mistake(rb->b, node, "the first wait is longer than the longest");
    }
    path_leave(rb->b, mark);
}

void park_bind(struct rule_binder *rb, const struct yaml_node *node)
{
    struct park_target target = {.park = {.backoff_base_ms = SECOND, .backoff_cap_ms = MINUTE}};
    size_t mark = path_enter(rb->b, "park");
    section_bind(rb->b, node, park_options, COUNT_OF(park_options), &target);
    if (target.backoff)
        backoff_bind(rb, target.backoff, &target.park);
    rb->rule->park = target.park;
    path_leave(rb->b, mark);
}
