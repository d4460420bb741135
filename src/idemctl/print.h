/* SPDX-License-Identifier: MIT */
/* print: rows of a query as JSON objects or as aligned text, by one table of columns. */
#ifndef IDEMCTL_PRINT_H
#define IDEMCTL_PRINT_H

#include "command.h"

#include <stdio.h>

enum print_kind {
    PRINT_TEXT,      /* a string */
    PRINT_NUMBER,
    PRINT_TIME,      /* DATETIME in UTC: YYYY-MM-DDTHH:MM:SS.fffZ */
    PRINT_HEX,
    PRINT_JSON,      /* JSON text as it stands; if it is none, a string */
    PRINT_STATUS     /* idem_record.status: processing, applied, closed */
};

struct print_column {
    const char *name;            /* of the JSON member */
    enum print_kind kind;
    int width;                   /* of a list; 0 = not in lists */
};

/* One row as a JSON object. */
void print_json_row(const struct print_column *columns, uint32_t count, const struct conn_cell *cells, FILE *to);

/* One row as lines `name: value`, indented by `indent` blanks; NULL is left out. */
void print_text_row(const struct print_column *columns, uint32_t count, const struct conn_cell *cells, int indent);

/* A heading, or a row, of a list. */
void print_list_head(const struct print_column *columns, uint32_t count);
void print_list_row(const struct print_column *columns, uint32_t count, const struct conn_cell *cells);

/* A JSON string. */
void print_string(struct bytes text, FILE *to);

#endif
