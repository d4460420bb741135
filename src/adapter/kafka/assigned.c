/* SPDX-License-Identifier: MIT */
/* assigned: the list of the partitions that the group gave us, and what is known of each. */
#include "source_self.h"

#include <stdlib.h>

struct assigned *assigned_find(struct kafka_source *source, const char *topic, int32_t number)
{
    for (uint32_t i = 0; i < source->assigned_count; i++)
        if (source->assigned[i].number == number && strcmp(source->assigned[i].topic, topic) == 0)
            return &source->assigned[i];
    return NULL;
}

struct assigned *assigned_add(struct kafka_source *source, const char *topic, int32_t number)
{
    struct assigned *known = assigned_find(source, topic, number);
    if (known)
        return known;
    if (source->assigned_count == source->assigned_size) {
        uint32_t size = source->assigned_size ? source->assigned_size * 2 : 16;
        struct assigned *larger = realloc(source->assigned, size * sizeof *larger);
        if (!larger)
            abort();             /* a consumer that forgets a partition would lose records */
        source->assigned = larger;
        source->assigned_size = size;
    }
    struct assigned *added = &source->assigned[source->assigned_count++];
    *added = (struct assigned){.number = number, .next = SOURCE_OFFSET_NONE, .committed = -1};
    strncpy(added->topic, topic, TOPIC_MAX);
    return added;
}

void assigned_remove(struct kafka_source *source, const char *topic, int32_t number)
{
    struct assigned *gone = assigned_find(source, topic, number);
    if (gone)
        *gone = source->assigned[--source->assigned_count];
}
