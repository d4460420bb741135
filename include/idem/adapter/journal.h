/* SPDX-License-Identifier: MIT */
/* journal: log lines as entries of the systemd journal, one field of the entry for each field of the line
 * (systemd.journal-fields(7)). */
#ifndef IDEM_ADAPTER_SYSTEMD_JOURNAL_H
#define IDEM_ADAPTER_SYSTEMD_JOURNAL_H

#include "idem/base/log.h"

/* Standard error is connected to the journal: JOURNAL_STREAM names its device and inode (systemd.exec(5)). */
bool journal_is_stderr(void);

/* A log_sink: MESSAGE = the line, PRIORITY = its level, SYSLOG_IDENTIFIER = idemd, and IDEM_<FIELD> for every field
 * but ts and level. What the journal does not take goes to standard error. The context is not looked at. Thread-safe.
 */
void journal_sink(void *context, struct bytes lines);

#endif
