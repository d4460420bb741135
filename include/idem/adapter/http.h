/* SPDX-License-Identifier: MIT */
/* http: a small listener that answers GET and HEAD from whole answers in memory. It has a thread of its own; however
 * many clients come, however slowly they speak and whatever bytes they send, nobody else waits for it and its memory
 * stays small. */
#ifndef IDEM_ADAPTER_HTTP_H
#define IDEM_ADAPTER_HTTP_H

#include "idem/base/err.h"
#include "idem/core/config.h"

struct http_answer {
    unsigned status;             /* 200, 404, 503 */
    const char *type;            /* static: Content-Type */
    char *body;                  /* from malloc; taken. NULL with len 0: none */
    size_t len;                  /* bytes */
};

/* Fills *ret for a path (unescaped, without its query). Called on http's thread; must not wait for anybody. */
typedef void http_answer_fn(void *context, struct bytes path, struct http_answer *ret);

struct http;

/* Listens and answers from now on. `config` and `context` are borrowed until http_stop. NULL: ERR_CONFIG with the
 * reason (an address that is taken or not ours, a token file that cannot be read), ERR_FATAL. */
struct http *http_start(const struct http_config *config, http_answer_fn *answer, void *context, struct err *err);

/* Waits for the answers that are under way, closes everything. NULL is fine. */
void http_stop(struct http *http);

/* HOST:PORT as bound, with the port that was chosen for port 0; NUL-terminated, lives as long as http. */
const char *http_address(const struct http *http);

#endif
