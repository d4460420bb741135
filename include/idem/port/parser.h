/* SPDX-License-Identifier: MIT */
/* parser: body bytes to a doc. One parser a thread; it owns its scratch memory and reuses it. */
#ifndef IDEM_PORT_PARSER_H
#define IDEM_PORT_PARSER_H

#include "idem/core/evaluate.h"

struct parser_port {
    void *self;
    /* Fills *ret: a cause, or a doc that is borrowed until the next call. false: out of memory. */
    bool (*parse)(void *self, struct bytes body, struct parsed *ret);
};

#endif
