/* SPDX-License-Identifier: MIT */
/* notify: what systemd is told, through libsystemd (sd_notify(3)). Everything is a no-op without NOTIFY_SOCKET. */
#ifndef IDEM_ADAPTER_SYSTEMD_NOTIFY_H
#define IDEM_ADAPTER_SYSTEMD_NOTIFY_H

/* READY=1: MySQL answers and the group is joined. */
void notify_ready(void);
/* STOPPING=1. */
void notify_stopping(void);
void notify_status(const char *text);    /* one line */

/* Feeds the watchdog, at most once a second; a no-op if the unit has none. */
void notify_watchdog(void);

#endif
