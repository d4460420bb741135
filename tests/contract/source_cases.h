/* SPDX-License-Identifier: MIT */
/* source_cases: what every source has to do, the fake of the simulator and the Kafka adapter alike: members of one
 * group on one topic of two partitions. Each case sees only source ports and the hooks below. For cmocka programs. */
#ifndef IDEM_TESTS_SOURCE_CASES_H
#define IDEM_TESTS_SOURCE_CASES_H

#include "idem/port/source.h"

enum { SOURCE_PARTITIONS = 2, SOURCE_MEMBERS = 2 };

struct source_hooks {
    void *context;
    /* A topic without records, a group without members and offsets. */
    void (*reset)(void *context);
    /* Appends so many records, each with its offset as its value; offsets have no gaps. */
    void (*produce)(void *context, int32_t partition, uint32_t count);
    /* A new member in slot 0 or 1; it joins while it is polled. Valid until leave() or the next reset(). */
    const struct source_port *(*join)(void *context, int slot, const struct source_events *events);
    /* Polls the member once; what the group settles meanwhile comes with it. */
    enum source_polled (*poll)(void *context, int slot, struct record *ret_record);
    /* The member is closed already, or its process ends now. */
    void (*leave)(void *context, int slot);
    /* The group's offset, SOURCE_OFFSET_NONE without one. */
    int64_t (*committed)(void *context, int32_t partition);
    /* The next commit is refused for good. NULL: this broker cannot be told to. */
    void (*refuse_commit)(void *context);
    /* The topic's name. */
    struct bytes (*topic)(void *context);
};

/* Runs all cases. Returns the number that failed. */
int source_cases_run(const char *name, const struct source_hooks *hooks);

#endif
