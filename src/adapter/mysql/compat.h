/* SPDX-License-Identifier: MIT */
/* compat: what differs between the two client libraries (MariaDB Connector/C and libmysqlclient),
 * and nothing else. For conn.c. Never sets the auto-reconnect option: its mere presence changes
 * behaviour (hazards M22). */
#ifndef IDEM_MYSQL_COMPAT_H
#define IDEM_MYSQL_COMPAT_H

#include <errmsg.h>
#include <mysql.h>

#include "idem/core/config.h"

#ifdef MARIADB_PACKAGE_VERSION

/* 3.4 turned TLS and its check on by default, so both are always said. */
static inline void compat_tls(MYSQL *db, enum tls_mode mode)
{
    my_bool enforce = mode != TLS_OFF, verify = mode == TLS_VERIFY;
    mysql_optionsv(db, MYSQL_OPT_SSL_ENFORCE, &enforce);
    mysql_optionsv(db, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
}

/* caching_sha2_password asks for the server's key by itself here. */
static inline void compat_server_key(MYSQL *db)
{
    (void)db;
}

#else

static inline void compat_tls(MYSQL *db, enum tls_mode mode)
{
    unsigned value = mode == TLS_OFF        ? SSL_MODE_DISABLED
                     : mode == TLS_REQUIRED ? SSL_MODE_REQUIRED
                                            : SSL_MODE_VERIFY_IDENTITY;
    mysql_options(db, MYSQL_OPT_SSL_MODE, &value);
}

/* caching_sha2_password without TLS: ask for the server's key, or the first login of an account
 * fails. */
static inline void compat_server_key(MYSQL *db)
{
    bool fetch = true;
    mysql_options(db, MYSQL_OPT_GET_SERVER_PUBLIC_KEY, &fetch);
}

#endif

#endif
