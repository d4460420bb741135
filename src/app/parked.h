/* SPDX-License-Identifier: MIT */
/* parked: rows of idem_parked become records again: asked for once a second, and at once when one of them has ended.
 * Part of intake: same thread, same struct. */
#ifndef IDEM_APP_PARKED_H
#define IDEM_APP_PARKED_H

#include "idem/app/intake.h"

/* Asks the keepers where it is time. */
void parked_round(struct intake *intake);

/* What a keeper found: gates are lowered, due records go to their workers. The job stays the caller's. */
void parked_answer(struct intake *intake, const struct keeper_job *job);

#endif
