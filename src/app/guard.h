/* SPDX-License-Identifier: MIT */
/* guard: stops a topic before it is emptied into dead letters, and a partition before its park overflows. Part of
 * intake: same thread, same struct. */
#ifndef IDEM_APP_GUARD_H
#define IDEM_APP_GUARD_H

#include "idem/app/intake.h"

/* A record came to its end. */
void guard_note(struct intake *intake, const struct item *item);

/* Sets and clears the reasons to pause, and tells of them. The source is told by intake. */
void guard_round(struct intake *intake);

#endif
