/* SPDX-License-Identifier: MIT */
/* shared: the few facts that threads tell each other, all atomic. Sized at start. */
#ifndef IDEM_APP_SHARED_H
#define IDEM_APP_SHARED_H

#include <stdatomic.h>
#include <stdint.h>

enum down_why { DOWN_UNREACHABLE, DOWN_CONFIG, DOWN_WHY_COUNT };

struct shared {
    atomic_uint_fast64_t *rule_commits;      /* by rule index: committed `first` outcomes (poison rule, details 1) */
    atomic_int *down;                        /* [database * DOWN_WHY_COUNT + why]: threads that cannot go on */
    atomic_bool fatal;                       /* an internal fault: the process ends with 70 */
};

#endif
