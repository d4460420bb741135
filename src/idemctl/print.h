/* SPDX-License-Identifier: MIT */
/* print: rows of a query as JSON objects or as aligned text, by one table of columns. */
#ifndef IDEMCTL_PRINT_H
#define IDEMCTL_PRINT_H

#include "command.h"

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

/* One row as a JSON object; first a member "database" if that is not empty. */
void print_json_row(const struct print_column *columns, uint32_t count, const struct conn_cell *cells,
                    struct bytes database, FILE *to);

/* One row as lines `name: value`, indented by `indent` blanks; NULL is left out. database as above. */
void print_text_row(const struct print_column *columns, uint32_t count, const struct conn_cell *cells,
                    struct bytes database, int indent, FILE *to);

/* A heading, or a row, of a list; database as above (the heading: whether there is one). */
void print_list_head(const struct print_column *columns, uint32_t count, bool database, FILE *to);
void print_list_row(const struct print_column *columns, uint32_t count, const struct conn_cell *cells,
                    struct bytes database, FILE *to);

/* A JSON string. */
void print_string(struct bytes text, FILE *to);

#endif
