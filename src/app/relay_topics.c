/* SPDX-License-Identifier: MIT */
/* relay_topics: see relay_topics.h. A short list, looked through from its beginning. */
#include "relay_topics.h"

static struct bytes name_of(const struct relay_topic *topic)
{
    return bytes_of(topic->name, topic->len);
}

struct relay_topic *relay_topics_find(struct relay_topics *topics, struct bytes name)
{
    for (int i = 0; i < RELAY_TOPICS_MAX; i++)
        if (topics->list[i].len && bytes_equal(name_of(&topics->list[i]), name))
            return &topics->list[i];
    return NULL;
}

bool relay_topics_active(struct relay_topics *topics, struct bytes name)
{
    const struct relay_topic *topic = relay_topics_find(topics, name);
    return topic && topic->active;
}

/* A free place, or that of one which is not active: it is only forgotten. */
static struct relay_topic *place(struct relay_topics *topics)
{
    struct relay_topic *found = NULL;
    for (int i = 0; i < RELAY_TOPICS_MAX && (!found || found->len); i++)
        if (!topics->list[i].len || !topics->list[i].active)
            found = &topics->list[i];
    return found;
}

bool relay_topics_set(struct relay_topics *topics, struct bytes name, int64_t until_us, bool *ret_new)
{
    struct relay_topic *topic = relay_topics_find(topics, name);
    *ret_new = !topic;
    if (!topic)
        topic = place(topics);
    if (!topic || name.len == 0 || name.len > TOPIC_MAX)
        return false;
    memmove(topic->name, name.at, name.len);
    topic->len = (uint16_t)name.len;
    topic->until_us = until_us;
    topic->active = true;
    return true;
}

uint32_t relay_topics_end(struct relay_topics *topics, int64_t now_us, int64_t *ret_next_us)
{
    uint32_t ended = 0;
    *ret_next_us = INT64_MAX;
    for (int i = 0; i < RELAY_TOPICS_MAX; i++) {
        struct relay_topic *topic = &topics->list[i];
        if (!topic->len || !topic->active)
            continue;
        if (topic->until_us <= now_us) {
            topic->active = false;
            ended++;
        } else if (topic->until_us < *ret_next_us) {
            *ret_next_us = topic->until_us;
        }
    }
    return ended;
}

uint32_t relay_topics_names(const struct relay_topics *topics, struct bytes *ret_names)
{
    uint32_t count = 0;
    for (int i = 0; i < RELAY_TOPICS_MAX; i++)
        if (topics->list[i].len && topics->list[i].active)
            ret_names[count++] = name_of(&topics->list[i]);
    return count;
}
