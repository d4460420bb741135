/* SPDX-License-Identifier: MIT */
/* bind: the entry of the loader. It stands apart from the binder, which every room of the grammar uses: so nothing
 * that they need leads back to them. */
#include "binder.h"

bool config_bind(const struct yaml_node *root, struct bytes path, const struct config_lookup *lookup,
                 struct arena *arena, struct config *ret, struct diagnostics *diagnostics)
{
    struct config made = {0};
    struct binder b = {.arena = arena, .lookup = lookup, .config = &made, .diagnostics = diagnostics};
    const struct yaml_node *topics = NULL;

    arena->exhausted = false;
    made.path = arena_copy(arena, path);
    if (root->kind != YAML_MAPPING)
        return mistake(&b, root, "the file must be a mapping that starts with `version: 1`");
    sections_bind(&b, root, &topics);
    if (topics)
        topics_bind(&b, topics);
    if (arena->exhausted)
        mistake(&b, NULL, "the configuration does not fit into memory");
    if (b.mistakes > 0)
        return false;
    *ret = made;
    return true;
}
