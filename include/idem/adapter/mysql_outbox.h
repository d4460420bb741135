/* SPDX-License-Identifier: MIT */
/* outbox: idem_outbox and idem_lease of one database as the outbox port. */
#ifndef IDEM_ADAPTER_MYSQL_OUTBOX_H
#define IDEM_ADAPTER_MYSQL_OUTBOX_H

#include "idem/adapter/mysql_conn.h"
#include "idem/core/config.h"
#include "idem/port/outbox.h"

struct mysql_outbox;

/* owner: who holds the lease, for people that read idem_lease; must differ between processes, at most 128 bytes,
 * copied. database is borrowed. NULL: out of memory. */
struct mysql_outbox *mysql_outbox_create(const struct database_config *database, uint32_t lease_ms,
                                         const char *owner);
/* NULL is fine. */
void mysql_outbox_destroy(struct mysql_outbox *outbox);
/* Borrowed until the outbox is destroyed. */
const struct outbox_port *mysql_outbox_port(struct mysql_outbox *outbox);

#endif
