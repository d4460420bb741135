/* SPDX-License-Identifier: MIT */
/* give_up: ends what waits for one number, by the daemon's own transaction (table B13). */
#ifndef IDEMCTL_GIVE_UP_H
#define IDEMCTL_GIVE_UP_H

#include "command.h"

/* All rows of (biz_type, biz_no) in config->databases[database], oldest first; adds their number to *total. CTL_GOOD,
 * or told. */
int give_up_number(const struct ctl *ctl, uint32_t database, struct bytes biz_type, struct bytes biz_no,
                   uint64_t *total);

#endif
