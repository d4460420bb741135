/* SPDX-License-Identifier: MIT */
/* commits: the group's offsets. Only those of the present assignment, never a lower one than before (hazards K4). What
 * was told without waiting and then refused is told again: its caller believes that it is done, and on a quiet topic
 * nothing newer would take it along. */
#include "source_self.h"

#include <time.h>

enum { AGAIN_AFTER_MS = 1000 };      /* as often as progress is told anyway (design section 3, step 10) */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The callback for every commit, from within poll; `list` has an error of its own for each partition. */
void commits_answered(rd_kafka_t *consumer, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list,
                      void *opaque)
{
    struct kafka_source *source = opaque;
    (void)consumer;
    if (code == RD_KAFKA_RESP_ERR__NO_OFFSET || !list)
        return;
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *answer = &list->elems[i];
        struct assigned *partition = assigned_find(source, answer->topic, answer->partition);
        /* A newer one is on its way, with an answer of its own; or it is of a former assignment. */
        if (!partition || answer->offset != partition->committed)
            continue;
        partition->refused = code != RD_KAFKA_RESP_ERR_NO_ERROR || answer->err != RD_KAFKA_RESP_ERR_NO_ERROR;
        if (partition->refused)
            source->again_ms = now_ms() + AGAIN_AFTER_MS;
    }
}

void commits_again(struct kafka_source *source, bool now)
{
    if (source->again_ms == 0 || (!now && now_ms() < source->again_ms))
        return;
    source->again_ms = 0;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)source->assigned_count);
    for (uint32_t i = 0; i < source->assigned_count; i++) {
        struct assigned *partition = &source->assigned[i];
        if (partition->refused)
            rd_kafka_topic_partition_list_add(list, partition->topic, partition->number)->offset =
                partition->committed;
        partition->refused = false;
    }
    if (list->cnt > 0)
        rd_kafka_commit(source->consumer, list, true);
    rd_kafka_topic_partition_list_destroy(list);
}

enum err_class commits_tell(void *self, const struct source_partition *partitions, uint32_t count, bool wait,
                            uint32_t timeout_ms, struct err *err)
{
    struct kafka_source *source = self;
    (void)timeout_ms;            /* a waiting commit is bounded by the coordinator's session and by the reaper */
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
    for (uint32_t i = 0; i < count; i++) {
        char topic[TOPIC_MAX + 1] = "";
        memcpy(topic, partitions[i].topic.at, partitions[i].topic.len);
        struct assigned *partition = assigned_find(source, topic, partitions[i].partition);
        /* Once more if the caller waits: what was told without waiting may have been refused since. */
        if (!partition || partitions[i].offset < partition->committed + !wait)
            continue;
        rd_kafka_topic_partition_list_add(list, topic, partition->number)->offset = partitions[i].offset;
    }
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (list->cnt > 0)
        code = rd_kafka_commit(source->consumer, list, !wait);
    for (int i = 0; i < list->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
        assigned_find(source, list->elems[i].topic, list->elems[i].partition)->committed = list->elems[i].offset;
    rd_kafka_topic_partition_list_destroy(list);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return err_set(err, ERR_RECONNECT, (int)code, "commit", "%s", rd_kafka_err2str(code));
    return ERR_NONE;
}
