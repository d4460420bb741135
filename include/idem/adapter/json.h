/* SPDX-License-Identifier: MIT */
/* json: bodies by yyjson (the only file that sees it) into the flat doc of core. Owned by one thread. */
#ifndef IDEM_ADAPTER_JSON_JSON_H
#define IDEM_ADAPTER_JSON_JSON_H

#include "idem/port/parser.h"

struct json_parser;

/* body_max: largest body that will be given, bytes. Scratch memory grows to what was needed and is kept. NULL: out of
 * memory. */
struct json_parser *json_parser_create(size_t body_max);
void json_parser_destroy(struct json_parser *parser);      /* NULL is fine */

/* The port; borrowed until the parser is destroyed. */
struct parser_port json_parser_port(struct json_parser *parser);

#endif
