/* SPDX-License-Identifier: MIT */
/* doc: a parsed body as a flat list of nodes in document order (a parent before its children), made by
 * a parser adapter and read by core. A form body gives the same shape: one object of strings. All views
 * point into the record's body or the parse buffer and are borrowed as long as those live. */
#ifndef IDEM_CORE_DOC_H
#define IDEM_CORE_DOC_H

#include "idem/base/buf.h"

enum doc_type { DOC_NULL, DOC_FALSE, DOC_TRUE, DOC_NUMBER, DOC_STRING, DOC_ARRAY, DOC_OBJECT };

struct doc_node {
    enum doc_type type;
    uint32_t count;       /* children of an array, members of an object */
    uint32_t next;        /* index of the node after this one's whole subtree */
    struct bytes name;    /* decoded member name, if the parent is an object */
    struct bytes text;    /* DOC_STRING: decoded; DOC_NUMBER: lexeme; true/false/null: the word */
    struct bytes token;   /* scalars: the source token as it stood, strings with their quotes */
};

struct doc {
    const struct doc_node *nodes;   /* nodes[0] is the root, an object */
    uint32_t count;
};

/* A compiled RFC 6901 pointer: its reference tokens, unescaped. Borrowed from the configuration. */
struct pointer {
    const struct bytes *tokens;
    uint32_t count;
};

/* The node, or NULL if there is none. Array tokens as RFC 6901 section 4 (no leading zeros; "-" is none). */
const struct doc_node *doc_find(const struct doc *doc, struct pointer pointer);

/* Writes the node as JSON without blanks: scalars by their source token, containers recursively by node
 * order (never by recursion on the C stack deeper than DOC_DEPTH_MAX). */
void doc_write(const struct doc *doc, const struct doc_node *node, struct buf *buf);

#endif
