/* SPDX-License-Identifier: MIT */
/* redrive: dead letters get a way back, or an end: idemctl dead-letter redrive|discard. */
#ifndef IDEMCTL_REDRIVE_H
#define IDEMCTL_REDRIVE_H

#include "filter.h"

/* Arguments: IDs, or the list's filters (also as --filter NAME=VALUE), --rate R, --dry-run, --force. */
int redrive(struct ctl *ctl, const struct filter *filters, uint32_t filter_count);

/* Arguments: IDs, --note TEXT, --yes, --force. */
int discard(struct ctl *ctl);

#endif
