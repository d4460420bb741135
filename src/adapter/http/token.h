/* SPDX-License-Identifier: MIT */
/* token: the secret that a reader of the listener shows; for http.c. */
#ifndef IDEM_HTTP_TOKEN_H
#define IDEM_HTTP_TOKEN_H

#include "idem/base/err.h"
#include "idem/core/config.h"

/* Whether the file can be read and holds something: ERR_NONE, or ERR_CONFIG. */
enum err_class token_check(struct bytes path, struct err *err);

/* Whether an Authorization header (NULL: there is none) shows what the file holds just now. A file that cannot be read
 * lets nobody in. The time it takes does not tell how much was right. */
bool token_is_shown(struct bytes path, const char *authorization);

#endif
