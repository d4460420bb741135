/* SPDX-License-Identifier: MIT */
/* explain: what the three files of idemctl explain share: the record and where it came from, what evaluation and the
 * transaction made of it, and the SQL that was run. */
#ifndef IDEMCTL_EXPLAIN_H
#define IDEMCTL_EXPLAIN_H

#include "print.h"

#include "idem/app/txn.h"

struct explain {
    struct ctl *ctl;
    const struct topic *topic;
    struct arena arena;
    struct json_parser *json;    /* the evaluation's views lie in its memory */
    struct item item;
    struct txn txn;
    uint8_t *body;               /* of --file; owned */
    uint8_t *headers;            /* the merged headers, stored form; owned */
    const char *key;             /* --key, or NULL */
    const char **given;          /* --header NAME=VALUE in their order; owned, texts borrowed from the arguments */
    uint32_t given_count;
    struct bytes *statements;    /* as they were run; list and texts owned */
    uint32_t statement_count, statement_size;
    bool exhausted;              /* a statement could not be kept: nothing is printed then */
    uint32_t errors;             /* of the schema */
};

/* Takes --file or --partition and --offset, --key and --header out of the arguments and fills explain->item.record,
 * given headers merged. CTL_GOOD, or another code (told). */
int explain_read_record(struct explain *explain);

/* Puts explain->key into the header that `rule` takes its key from, as one more given header. false: no such source. */
bool explain_give_key(struct explain *explain, const struct rule *rule);

/* Frees what the two above took. */
void explain_free_record(struct explain *explain);

/* Prints the whole answer to ctl->out, as JSON or as text. CTL_GOOD, or CTL_INTERNAL (told). */
int explain_print(struct explain *explain);

#endif
