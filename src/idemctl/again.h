/* SPDX-License-Identifier: MIT */
/* again: stored records judged by today's rules, as the daemon would judge them. For what is redriven or given up. */
#ifndef IDEMCTL_AGAIN_H
#define IDEMCTL_AGAIN_H

#include "command.h"

#include "idem/core/item.h"

struct again;

/* Reads the live schema of config->databases[database], without which values have no types. NULL: *ret_code says why
 * (told). */
struct again *again_open(const struct ctl *ctl, uint32_t database, int *ret_code);
void again_close(struct again *again);

/* Forgets all records that were judged. */
void again_reset(struct again *again);

/* An evaluated item, valid until again_reset. topic, key, headers and value are copied. NULL: no such topic in the file
 * (*ret_known false), or out of memory. */
struct item *again_judge(struct again *again, const struct record *record, bool *ret_known);

/* Memory that lives as long as the items. */
struct arena *again_arena(struct again *again);

#endif
