/* SPDX-License-Identifier: MIT */
/* check: what the files of idemctl check share: where findings go. */
#ifndef IDEMCTL_CHECK_H
#define IDEMCTL_CHECK_H

#include "print.h"

#include "idem/adapter/mysql_check.h"

struct findings {
    const struct ctl *ctl;
    uint32_t count, serious;     /* serious: errors and warnings */
};

/* finding.c: prints it; a schema_finding whose context is a struct findings. */
void check_finding(void *context, enum severity severity, const char *code, const char *path, const char *message);

/* Rules' ttl against what Kafka keeps of their topics; where the broker does not say, that is said. CTL_GOOD, or
 * another code (told). */
int check_retention(const struct ctl *ctl, struct findings *findings);

#endif
