/* SPDX-License-Identifier: MIT */
/* print: rows of a query as JSON or as aligned text, for every subcommand. Never asks the database. */
#include "print.h"

#include "idem/core/evaluate.h"

#include "idem/adapter/json.h"

#include <stdlib.h>

enum { DATABASE_WIDTH = 12 };

static void put_hex(struct bytes text, FILE *to)
{
    for (size_t i = 0; i < text.len; i++)
        fprintf(to, "%02x", text.at[i]);
}

/* In pieces: a payload may be large, and a character that is cut in two is put together again by the reader. */
static void put_escaped(struct bytes text, FILE *to)
{
    enum { PIECE = 256 };
    char block[PIECE * 6 + 2];
    struct buf buf;
    for (size_t at = 0; at < text.len; at += PIECE) {
        buf_init(&buf, block, sizeof block);
        buf_json_string(&buf, bytes_of(text.at + at, text.len - at < PIECE ? text.len - at : PIECE));
        fwrite(buf.at + 1, 1, buf.len - 2, to);
    }
}

void print_string(struct bytes text, FILE *to)
{
    fputc('"', to);
    if (bytes_is_utf8(text))
        put_escaped(text, to);
    else                         /* no text: its bytes in hex */
        put_hex(text, to);
    fputc('"', to);
}

/* 2026-12-01 03:00:00.125 to 2026-12-01T03:00:00.125Z */
static void put_time(struct bytes text, FILE *to)
{
    for (size_t i = 0; i < text.len; i++)
        fputc(text.at[i] == ' ' ? 'T' : text.at[i], to);
    fputc('Z', to);
}

static const char *status_name(struct bytes text)
{
    if (bytes_equal(text, BYTES_LIT("0")))
        return "processing";
    return bytes_equal(text, BYTES_LIT("1")) ? "applied" : "closed";
}

static void put_plain(enum print_kind kind, struct bytes text, FILE *to)
{
    switch (kind) {
    case PRINT_TIME:
        put_time(text, to);
        return;
    case PRINT_HEX:
        put_hex(text, to);
        return;
    case PRINT_STATUS:
        fputs(status_name(text), to);
        return;
    case PRINT_TEXT:
    case PRINT_NUMBER:
    case PRINT_JSON:
        break;
    }
    if (bytes_is_utf8(text))
        fwrite(text.at, 1, text.len, to);
    else
        put_hex(text, to);
}

/* Whoever edits a table by hand may leave anything there: the document stays JSON all the same. */
static bool is_object(struct bytes text)
{
    struct parsed parsed = {.cause = CAUSE_BODY};
    struct json_parser *json = json_parser_create(text.len);
    if (!json)
        return false;
    struct parser_port parser = json_parser_port(json);
    bool good = parser.parse(parser.self, text, &parsed) && parsed.cause == CAUSE_NONE;
    json_parser_destroy(json);
    return good;
}

static void put_json(enum print_kind kind, struct bytes text, FILE *to)
{
    if (kind == PRINT_NUMBER || (kind == PRINT_JSON && is_object(text))) {
        fwrite(text.at, 1, text.len, to);
        return;
    }
    if (kind == PRINT_TEXT || kind == PRINT_JSON) {
        print_string(text, to);
        return;
    }
    fputc('"', to);
    put_plain(kind, text, to);
    fputc('"', to);
}

void print_json_row(const struct print_column *columns, uint32_t count, const struct conn_cell *cells,
                    struct bytes database, FILE *to)
{
    fputc('{', to);
    if (database.len) {
        fputs("\"database\":", to);
        print_string(database, to);
    }
    for (uint32_t i = 0; i < count; i++) {
        fprintf(to, "%s\"%s\":", i || database.len ? "," : "", columns[i].name);
        if (cells[i].is_null)
            fputs("null", to);
        else
            put_json(columns[i].kind, cells[i].text, to);
    }
    fputc('}', to);
}

void print_text_row(const struct print_column *columns, uint32_t count, const struct conn_cell *cells,
                    struct bytes database, int indent, FILE *to)
{
    if (database.len)
        fprintf(to, "%*s%-12s %.*s\n", indent, "", "database", (int)database.len, (const char *)database.at);
    for (uint32_t i = 0; i < count; i++) {
        if (cells[i].is_null || cells[i].text.len == 0)
            continue;
        fprintf(to, "%*s%-12s ", indent, "", columns[i].name);
        put_plain(columns[i].kind, cells[i].text, to);
        fputc('\n', to);
    }
}

void print_list_head(const struct print_column *columns, uint32_t count, bool database, FILE *to)
{
    if (database)
        fprintf(to, "%-*s ", DATABASE_WIDTH, "database");
    for (uint32_t i = 0; i < count; i++)
        if (columns[i].width)
            fprintf(to, "%-*s ", columns[i].width, columns[i].name);
    fputc('\n', to);
}

void print_list_row(const struct print_column *columns, uint32_t count, const struct conn_cell *cells,
                    struct bytes database, FILE *to)
{
    if (database.len)
        fprintf(to, "%-*.*s ", DATABASE_WIDTH, (int)database.len, (const char *)database.at);
    for (uint32_t i = 0; i < count; i++) {
        char *text = NULL;
        size_t size = 0;
        if (!columns[i].width)
            continue;
        FILE *cell = open_memstream(&text, &size);
        if (!cell)
            return;
        if (!cells[i].is_null)
            put_plain(columns[i].kind, cells[i].text, cell);
        if (fclose(cell) == 0)
            fprintf(to, "%-*s ", columns[i].width, text);
        free(text);
    }
    fputc('\n', to);
}
