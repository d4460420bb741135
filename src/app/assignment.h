/* SPDX-License-Identifier: MIT */
/* assignment: which partitions are ours, where they start, how far they got. The other half of intake: same thread,
 * same struct. Order on giving up: drain, progress, Kafka's offset (design section 3, steps 5 and 10). */
#ifndef IDEM_APP_ASSIGNMENT_H
#define IDEM_APP_ASSIGNMENT_H

#include "idem/app/intake.h"

/* Takes the keepers' answers: starts partitions that were held back, commits offsets whose progress is written. Posts
 * new progress if a second has passed, or at once if `now`. */
void assignment_round(struct intake *intake, bool now);

/* Waits until nothing is out or until the deadline (monotonic microseconds). */
void assignment_drain(struct intake *intake, int64_t deadline_us);

/* Writes progress, then offsets, of everything that moved, and waits for it until the deadline. */
void assignment_settle(struct intake *intake, int64_t deadline_us);

#endif
