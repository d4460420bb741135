/* SPDX-License-Identifier: MIT */
/* shared: the few facts that threads tell each other, all atomic. Sized at start. */
#ifndef IDEM_APP_SHARED_H
#define IDEM_APP_SHARED_H

#include <stdatomic.h>
#include <stdint.h>

enum down_why { DOWN_UNREACHABLE, DOWN_CONFIG, DOWN_WHY_COUNT };

struct shared {
    atomic_uint_fast64_t *rule_commits;      /* by rule index: committed `first` outcomes (poison rule, details 1) */
    atomic_uint_fast64_t *rule_judged;       /* by rule index: committed outcomes that a business row gave */
    atomic_uint_fast64_t *commits, *losses;  /* by database: transactions committed, and lost with their connection */
    atomic_uint_fast64_t *servers;           /* by database: where its keeper's session is (ledger_ops.server), 0 = yet
                                              * nowhere. Records of partitions taken over elsewhere are taken back */
    atomic_int *down;                        /* [database * DOWN_WHY_COUNT + why]: threads that cannot go on */
    atomic_int *topic_down;                  /* by topic: workers that cannot apply it, for its schema or grants */
    atomic_uint_fast64_t held, held_bytes;   /* records that wait in workers for such a topic, and their memory */
    atomic_int floods, full;                 /* topics paused by a flood of letters, partitions by a full park */
    atomic_bool fatal;                       /* an internal fault: the process ends with 70 */
};

#endif
