/* SPDX-License-Identifier: MIT */
/* migrate_list: the migrations this program knows, ascending; made from migrations/ at build. */
#ifndef IDEM_MYSQL_MIGRATE_LIST_H
#define IDEM_MYSQL_MIGRATE_LIST_H

#include "idem/base/bytes.h"

struct migration {
    uint32_t version;
    const char *name;
    struct bytes text;           /* the whole file: its SHA-256 is the checksum */
};

extern const struct migration migrations[];
extern const uint32_t migration_count;

#endif
