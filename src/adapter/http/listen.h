/* SPDX-License-Identifier: MIT */
/* listen: makes the socket of the listener; for http.c. */
#ifndef IDEM_HTTP_LISTEN_H
#define IDEM_HTTP_LISTEN_H

#include "idem/base/err.h"
#include "idem/core/config.h"

enum { HTTP_ADDRESS_MAX = 256 };

/* Bound and listening; -1: *err says why. ret_address: HOST:PORT as it is bound. */
int listen_socket(const struct http_config *config, char ret_address[HTTP_ADDRESS_MAX], struct err *err);

#endif
