/* SPDX-License-Identifier: MIT */
/* err: see idem/base/err.h. */
#include "idem/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum err_class err_set(struct err *err, enum err_class class, int number, const char *where,
                       const char *format, ...)
{
    if (err) {
        va_list args;
        err->class = class;
        err->number = number;
        err->where = where;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
    }
    return class;
}

const char *err_class_name(enum err_class class)
{
    switch (class) {
    case ERR_NONE: return "none";
    case ERR_RETRY: return "retry";
    case ERR_LOCKED: return "locked";
    case ERR_RECONNECT: return "reconnect";
    case ERR_EXHAUSTED: return "exhausted";
    case ERR_WRONG_SERVER: return "wrong_server";
    case ERR_IN_DOUBT: return "in_doubt";
    case ERR_TOO_LARGE: return "too_large";
    case ERR_DATA: return "data";
    case ERR_UNIQUE: return "unique";
    case ERR_UNKNOWN: return "unknown";
    case ERR_SCHEMA: return "schema";
    case ERR_CONFIG: return "config";
    case ERR_FATAL: return "fatal";
    }
    abort();
}
