/* SPDX-License-Identifier: MIT */
/* filter: options that narrow a list, as conditions of SQL, for every noun that has a list. Nothing of an argument
 * becomes syntax. */
#ifndef IDEMCTL_FILTER_H
#define IDEMCTL_FILTER_H

#include "command.h"

enum filter_kind {
    FILTER_TEXT,     /* equal, bytewise */
    FILTER_WORD,     /* equal, and one of `words` */
    FILTER_SINCE,    /* a point in time (core/moment.h): at or after it */
    FILTER_UNTIL     /* a point in time: before it */
};

struct filter {
    const char *option, *column;         /* "--since", "created_at" */
    enum filter_kind kind;
    const char *const *words;            /* FILTER_WORD: ends with NULL */
};

/* Takes the options out of the arguments and appends ` AND column=...` for each that is there. CTL_GOOD, or CTL_USAGE
 * (told which value is none). */
int filter_take(struct ctl *ctl, const struct filter *list, uint32_t count, struct buf *sql);

/* --limit N, 1 up to max; *ret_limit is `usual` without it. CTL_GOOD or CTL_USAGE (told). */
int filter_take_limit(struct ctl *ctl, uint64_t usual, uint64_t max, uint64_t *ret_limit);

#endif
