/* SPDX-License-Identifier: MIT */
/* relay_topics: topics that the relay treats apart for a while: those that take nothing (there is none, or we may not
 * write to it), and those that refused a whole batch. Owned by the relay. */
#ifndef IDEM_APP_RELAY_TOPICS_H
#define IDEM_APP_RELAY_TOPICS_H

#include "idem/base/bytes.h"
#include "idem/core/limits.h"

enum { RELAY_TOPICS_MAX = 32 };      /* of each kind */

struct relay_topic {
    uint8_t name[TOPIC_MAX];
    uint16_t len;                    /* 0 = free place */
    bool active;                     /* its time has not come yet; one that has been is kept to know it again */
    int64_t until_us;
};

struct relay_topics {
    struct relay_topic list[RELAY_TOPICS_MAX];
};

/* Active or not; NULL: not in the list. */
struct relay_topic *relay_topics_find(struct relay_topics *topics, struct bytes name);

bool relay_topics_active(struct relay_topics *topics, struct bytes name);

/* Active until then. *ret_new: it was not in the list. false: no place. */
bool relay_topics_set(struct relay_topics *topics, struct bytes name, int64_t until_us, bool *ret_new);

/* Those whose time has come become inactive; returns how many. *ret_next: when the next one's comes, or INT64_MAX. */
uint32_t relay_topics_end(struct relay_topics *topics, int64_t now_us, int64_t *ret_next_us);

/* Views of the active ones' names, RELAY_TOPICS_MAX at most. */
uint32_t relay_topics_names(const struct relay_topics *topics, struct bytes *ret_names);

#endif
