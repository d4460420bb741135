/* SPDX-License-Identifier: MIT */
/* err: what the machine could not do, and what the caller does about it. The class is the return
 * value, the details go into `struct err` (fixed size, no allocation). An outcome (what happened to
 * a record) is never an error: see core/outcome.h. */
#ifndef IDEM_BASE_ERR_H
#define IDEM_BASE_ERR_H

#include <stdint.h>

enum err_class {
    ERR_NONE = 0,   /* done */
    ERR_RETRY,      /* roll back, run the same transaction again after a jittered pause (1213, ...) */
    ERR_LOCKED,     /* like ERR_RETRY, but a lock wait ran out (1205, 3572): somebody holds a row */
    ERR_RECONNECT,  /* the connection is dead: new connection, back off */
    ERR_EXHAUSTED,  /* the server answers that it has no room (disk, memory, locks, connections: 1114, 1040, ...):
                       rolled back, back off; no record is to blame */
    ERR_WRONG_SERVER, /* read-only server (1290, 1792, 1836): close, resolve again, next host */
    ERR_IN_DOUBT,   /* the answer to COMMIT is unknown: settle by claims, never COMMIT again */
    ERR_TOO_LARGE,  /* packet or transaction too large (1197, 1153, 2020): halve the batch */
    ERR_DATA,       /* the database refuses this record's data (1048, 1264, ...): `rejected` */
    ERR_UNIQUE,     /* 1062 on a business table */
    ERR_UNKNOWN,    /* a number in no list: halve; poison by the rule of two failures */
    ERR_SCHEMA,     /* what a rule needs is not there: table, column, index, grant on them (1142, 1146, 1054, ...): its
                       topic pauses, the others go on, retry */
    ERR_CONFIG,     /* password, database, session settings: pause, stay up, retry */
    ERR_FATAL       /* internal fault: stop the process with 70 */
};

enum { ERR_TEXT_MAX = 512 };

struct err {
    enum err_class class;
    int number;               /* foreign number (MySQL errno, librdkafka code), 0 if none */
    const char *where;        /* static text: the step that failed ("claim", "update", ...) */
    char text[ERR_TEXT_MAX];  /* NUL-terminated foreign text, cut to fit; never a payload */
};

#define ERR_MUST_CHECK __attribute__((warn_unused_result))

/* Fills *err (which may be NULL) and returns class. `where` must be static text. */
enum err_class err_set(struct err *err, enum err_class class, int number, const char *where,
                       const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Static name for logs: "retry", "locked", "reconnect", ... */
const char *err_class_name(enum err_class class);

#endif
