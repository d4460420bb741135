/* SPDX-License-Identifier: MIT */
/* list: `idemctl NOUN list`, for every noun that is a table: filters, a limit, all databases, JSON or aligned text. */
#ifndef IDEMCTL_LIST_H
#define IDEMCTL_LIST_H

#include "filter.h"
#include "print.h"

struct list {
    const char *member;                  /* of the JSON document: "dead_letters" */
    const char *empty;                   /* printed instead of no rows */
    const char *select;                  /* ends in a WHERE that takes more conditions */
    const char *order;                   /* column */
    const struct print_column *columns;
    uint32_t column_count;
    const struct filter *filters;
    uint32_t filter_count;
};

/* Takes the filters and --limit out of the arguments, asks and prints. Returns an exit code. */
int list_run(struct ctl *ctl, const struct list *list);

#endif
