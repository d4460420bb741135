/* SPDX-License-Identifier: MIT */
/* rebalance: partitions come and go. The handlers of the source's owner are called before librdkafka is answered, so
 * that offsets are committed while the partitions are still ours (hazards K5). Partitions that the owner holds back
 * stay in our list but are not fetched; starting one is an assign with offsets, as every seek is. */
#include "source_self.h"

#include <stdlib.h>

enum { COMMITTED_TIMEOUT_MS = 5000 };

void unpause(struct kafka_source *source, struct assigned *partition)
{
    if (!partition->paused)
        return;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, partition->topic, partition->number);
    rd_kafka_resume_partitions(source->consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
    partition->paused = false;
}

static bool is_cooperative(const struct kafka_source *source)
{
    const char *protocol = rd_kafka_rebalance_protocol(source->consumer);
    return protocol && strcmp(protocol, "COOPERATIVE") == 0;
}

static int64_t fetch_offset(int64_t offset)
{
    return offset == SOURCE_OFFSET_BEGINNING ? RD_KAFKA_OFFSET_BEGINNING : offset;
}

static rd_kafka_topic_partition_list_t *started_list(struct kafka_source *source)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)source->assigned_count);
    for (uint32_t i = 0; i < source->assigned_count; i++) {
        struct assigned *partition = &source->assigned[i];
        if (partition->started)
            rd_kafka_topic_partition_list_add(list, partition->topic, partition->number)->offset =
                fetch_offset(partition->next);
    }
    return list;
}

static rd_kafka_resp_err_t fetch_incrementally(struct kafka_source *source,
                                               const struct source_partition *changed, uint32_t count)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (uint32_t i = 0; i < count; i++) {
        char topic[TOPIC_MAX + 1] = "";
        memcpy(topic, changed[i].topic.at, changed[i].topic.len);
        struct assigned *partition = assigned_find(source, topic, changed[i].partition);
        if (!partition)
            continue;
        rd_kafka_topic_partition_list_add(list, topic, partition->number)->offset = fetch_offset(partition->next);
    }
    /* Taken out first where they were fetched already: one call cannot move a position. */
    rd_kafka_error_destroy(rd_kafka_incremental_unassign(source->consumer, list));
    rd_kafka_error_t *error = rd_kafka_incremental_assign(source->consumer, list);
    if (error)
        code = rd_kafka_error_code(error);
    rd_kafka_error_destroy(error);
    rd_kafka_topic_partition_list_destroy(list);
    return code;
}

rd_kafka_resp_err_t fetch_started(struct kafka_source *source, const struct source_partition *changed,
                                  uint32_t count)
{
    if (changed && is_cooperative(source))
        return fetch_incrementally(source, changed, count);
    rd_kafka_topic_partition_list_t *list = started_list(source);
    rd_kafka_resp_err_t code = rd_kafka_assign(source->consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
    return code;
}

/* ---- coming ---------------------------------------------------------------------------------------------------- */

/* The group's offsets; asked again while the coordinator moves, since not knowing them must not look like having
 * none. */
static bool read_committed(rd_kafka_t *consumer, rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; i < 3; i++) {
        bool good = rd_kafka_committed(consumer, list, COMMITTED_TIMEOUT_MS) == RD_KAFKA_RESP_ERR_NO_ERROR;
        for (int k = 0; k < list->cnt && good; k++)
            good = list->elems[k].err == RD_KAFKA_RESP_ERR_NO_ERROR;
        if (good)
            return true;
    }
    return false;
}

static void answer_assign(struct kafka_source *source, rd_kafka_topic_partition_list_t *list)
{
    if (!is_cooperative(source)) {
        fetch_started(source, NULL, 0);
        return;
    }
    rd_kafka_topic_partition_list_t *started = rd_kafka_topic_partition_list_new(list->cnt);
    for (int i = 0; i < list->cnt; i++) {
        struct assigned *partition = assigned_find(source, list->elems[i].topic, list->elems[i].partition);
        if (partition && partition->started)
            rd_kafka_topic_partition_list_add(started, partition->topic, partition->number)->offset =
                fetch_offset(partition->next);
    }
    rd_kafka_error_destroy(rd_kafka_incremental_assign(source->consumer, started));
    rd_kafka_topic_partition_list_destroy(started);
}

static struct source_partition *partitions_of(const rd_kafka_topic_partition_list_t *list)
{
    struct source_partition *partitions = calloc((size_t)list->cnt + 1, sizeof *partitions);
    if (!partitions)
        abort();
    for (int i = 0; i < list->cnt; i++)
        partitions[i] = (struct source_partition){bytes_text(list->elems[i].topic), list->elems[i].partition,
                                                  list->elems[i].offset >= 0 ? list->elems[i].offset
                                                                             : SOURCE_OFFSET_NONE};
    return partitions;
}

static void come(struct kafka_source *source, rd_kafka_topic_partition_list_t *list)
{
    if (list->cnt > 0 && !read_committed(source->consumer, list)) {
        /* Unknown is not none: take nothing, let the group settle anew. */
        rd_kafka_assign(source->consumer, NULL);
        rd_kafka_unsubscribe(source->consumer);
        source->resubscribe = true;
        return;
    }
    struct source_partition *partitions = partitions_of(list);
    source->events.joined(source->events.context);
    if (list->cnt > 0)
        source->events.assigned(source->events.context, partitions, (uint32_t)list->cnt);
    for (int i = 0; i < list->cnt; i++) {
        struct assigned *added = assigned_add(source, list->elems[i].topic, list->elems[i].partition);
        added->paused = false;
        added->started = partitions[i].offset != SOURCE_OFFSET_NONE;
        added->next = partitions[i].offset;
        added->committed = -1;
        added->refused = false;
    }
    free(partitions);
    answer_assign(source, list);
}

/* ---- going ----------------------------------------------------------------------------------------------------- */

static void go(struct kafka_source *source, rd_kafka_topic_partition_list_t *list)
{
    struct source_partition *partitions = partitions_of(list);
    bool lost = rd_kafka_assignment_lost(source->consumer) != 0;
    source->events.revoked(source->events.context, partitions, (uint32_t)list->cnt, lost);
    if (!lost)
        commits_again(source, true);     /* sent before the partitions are given back */
    free(partitions);
    rd_kafka_topic_partition_list_t *fetched = rd_kafka_topic_partition_list_new(list->cnt);
    for (int i = 0; i < list->cnt; i++) {
        struct assigned *gone = assigned_find(source, list->elems[i].topic, list->elems[i].partition);
        if (gone)
            unpause(source, gone);       /* or it would stand still when it comes back */
        if (gone && gone->started)
            rd_kafka_topic_partition_list_add(fetched, gone->topic, gone->number);
        assigned_remove(source, list->elems[i].topic, list->elems[i].partition);
    }
    if (is_cooperative(source))
        rd_kafka_error_destroy(rd_kafka_incremental_unassign(source->consumer, fetched));
    else
        rd_kafka_assign(source->consumer, NULL);
    rd_kafka_topic_partition_list_destroy(fetched);
}

void rebalance(rd_kafka_t *consumer, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list,
               void *opaque)
{
    struct kafka_source *source = opaque;
    (void)consumer;
    if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS)
        come(source, list);
    else
        go(source, list);
}
