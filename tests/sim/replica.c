/* SPDX-License-Identifier: MIT */
/* replica: a copy of the simulated database that lags behind, and takes its place. Sessions with the former primary are
 * broken by the number of the server; Kafka's offsets stay as they are. */
#include "world.h"

#include <stdio.h>

static struct {
    bool is_there;
    struct db db;
    struct log logs[PARTITIONS];         /* what was told when it was copied */
} replica;

void replica_forget(void)
{
    replica.is_there = false;
}

/* A replica that has what was committed until now. One without any progress would be a new database, where Kafka's
 * offset counts (design section 3, step 10). */
void replica_copy(void)
{
    for (int i = 0; i < PARTITIONS; i++)
        if (world.db.progress[i] < 0)
            return;
    replica.is_there = true;
    replica.db = world.db;
    memcpy(replica.logs, world.logs, sizeof replica.logs);
}

/* The primary dies with what the replica does not have yet; what was told of that holds no more. */
void replica_takes_over(void)
{
    if (!replica.is_there)
        return;
    world.db = replica.db;
    world.server++;
    if (world.verbose)
        printf("  failover to server %llu, progress %lld %lld %lld\n", (unsigned long long)world.server,
               (long long)world.db.progress[0], (long long)world.db.progress[1], (long long)world.db.progress[2]);
    for (int i = 0; i < PARTITIONS; i++) {
        for (uint32_t k = 0; k < world.logs[i].count; k++) {
            struct sent *sent = &world.logs[i].records[k];
            const struct sent *then = &replica.logs[i].records[k];
            bool was_told = k < replica.logs[i].count && then->reported;
            sent->reported = was_told;
            sent->ended = was_told && then->ended;
            sent->outcome = was_told ? then->outcome : OUTCOME_NONE;
            sent->cause = was_told ? then->cause : CAUSE_NONE;
        }
    }
}
