/* SPDX-License-Identifier: MIT */
/* cut_proxy: stands between a store and its server. It loses the answer to one COMMIT, while the server's side of the
 * connection stays open: the old session lives on, as behind a firewall that forgot the connection. And it refuses new
 * connections when told so. */
#ifndef IDEM_TESTS_CUT_PROXY_H
#define IDEM_TESTS_CUT_PROXY_H

#include <stdbool.h>
#include <stdint.h>

/* Listens on a free loopback port and returns it; connections go to host:port (IPv4 address). One proxy a program. */
uint16_t cut_proxy_start(const char *host, uint16_t port);
/* The next COMMIT: forwarded or not, its answer never comes. */
void cut_proxy_arm(bool forwarded);
/* Before it is carried out: forgets the order. */
void cut_proxy_disarm(void);
/* New connections are closed at once. */
void cut_proxy_refuse(bool refused);
/* Closes what it holds open. */
void cut_proxy_stop(void);

#endif
