/* SPDX-License-Identifier: MIT */
/* explain_print: the answer of idemctl explain, JSON as the contract names its members, or text. Looks at nothing but
 * what the other two files found. */
#include "explain.h"

#include "idem/base/sha256.h"

#include <stdlib.h>

enum { ROW_FIRST = 64 << 10, ROW_MAX = 1 << 30 };

static void member(FILE *to, const char *name, struct bytes text, bool is_null)
{
    fprintf(to, ",\"%s\":", name);
    if (is_null)
        fputs("null", to);
    else
        print_string(text, to);
}

static void hex_member(FILE *to, const char *name, const uint8_t *at, size_t len, bool is_null)
{
    char hex[2 * SHA256_LEN];
    bytes_hex(bytes_of(at, len), hex);
    member(to, name, bytes_of(hex, 2 * len), is_null);
}

static bool is_null(const struct value *value)
{
    return value->tag == VALUE_ABSENT || value->tag == VALUE_NULL;
}

static void identity_member(FILE *to, const struct evaluation *eval)
{
    fputs(",\"identity\":{", to);
    for (uint32_t i = 0; eval->rule && eval->values && i < eval->rule->identity_count; i++) {
        const struct value *value = &eval->values[eval->rule->identity[i].expr];
        fputs(i ? "," : "", to);
        print_string(eval->rule->identity[i].column, to);
        fputc(':', to);
        if (is_null(value))
            fputs("null", to);
        else
            print_string(value->text, to);
    }
    fputc('}', to);
}

/* *ret_row: JSON, returned to caller, free(); len 0 if no row was read. false: out of memory. */
static bool row_state(const struct explain *explain, struct buf *ret_row)
{
    struct row_layout layout;
    const struct item *item = &explain->item;
    *ret_row = (struct buf){0};
    if (!item->rows || !item->rows[0].found || item->rows[0].locked)
        return true;
    row_layout(item->eval.rule, 0, &layout);
    for (size_t size = ROW_FIRST; size <= ROW_MAX; size *= 2) {
        void *block = realloc(ret_row->at, size);
        if (!block)
            return false;
        buf_init(ret_row, block, size);
        row_write_json(&layout, &item->rows[0], ret_row);
        if (!ret_row->overflow)
            return true;
    }
    return false;
}

static void print_json(const struct explain *explain, struct bytes state)
{
    FILE *to = explain->ctl->out;
    const struct evaluation *eval = &explain->item.eval;
    const struct rule *rule = eval->rule;
    struct bytes none = {0};
    bool invalid = eval->outcome != OUTCOME_NONE;
    fputs("{\"topic\":", to);
    print_string(explain->topic->name, to);
    member(to, "rule", rule ? rule->name : none, !rule);
    member(to, "biz_type", rule ? rule->biz_type : none, !rule);
    member(to, "key", eval->key, eval->key.len == 0);
    member(to, "biz_no", eval->biz_no, eval->biz_no.len == 0);
    member(to, "action", rule ? rule->action : none, !rule);
    identity_member(to, eval);
    hex_member(to, "identity_hash", eval->identity_hash, IDENTITY_HASH_LEN, invalid);
    if (rule)
        fprintf(to, ",\"fingerprint_version\":%u", rule->fingerprint_version);
    else
        fputs(",\"fingerprint_version\":null", to);
    hex_member(to, "params_hash", eval->params_hash, PARAMS_HASH_LEN, invalid);
    member(to, "outcome", bytes_text(outcome_name(explain->item.outcome)), false);
    member(to, "cause", bytes_text(cause_name(explain->item.cause)), explain->item.cause == CAUSE_NONE);
    fputs(",\"row_state\":", to);
    if (state.len)
        fwrite(state.at, 1, state.len, to);
    else
        fputs("null", to);
    fputs(",\"sql\":[", to);
    for (uint32_t i = 0; i < explain->statement_count; i++) {
        fputs(i ? ",{\"text\":" : "{\"text\":", to);
        print_string(explain->statements[i], to);
        fputs(",\"params\":[]}", to);          /* values stand in the text as literals: that is what is sent */
    }
    fputs("]}\n", to);
}

static void line(FILE *to, const char *name, struct bytes text)
{
    if (text.len)
        fprintf(to, "%-12s %.*s\n", name, (int)text.len, (const char *)text.at);
}

static void hex_line(FILE *to, const char *name, const uint8_t *at, size_t len)
{
    char hex[2 * SHA256_LEN];
    bytes_hex(bytes_of(at, len), hex);
    line(to, name, bytes_of(hex, 2 * len));
}

static void print_rule(FILE *to, const struct evaluation *eval)
{
    const struct rule *rule = eval->rule;
    line(to, "rule", rule->name);
    line(to, "biz_type", rule->biz_type);
    line(to, "key", eval->key);
    line(to, "biz_no", eval->biz_no);
    line(to, "action", rule->action);
    for (uint32_t i = 0; eval->values && i < rule->identity_count; i++) {
        const struct value *value = &eval->values[rule->identity[i].expr];
        struct bytes text = is_null(value) ? BYTES_LIT("NULL") : value->text;
        fprintf(to, "%-12s %.*s=%.*s\n", "identity", (int)rule->identity[i].column.len,
                (const char *)rule->identity[i].column.at, (int)text.len, (const char *)text.at);
    }
    if (eval->outcome == OUTCOME_NONE)
        hex_line(to, "params_hash", eval->params_hash, PARAMS_HASH_LEN);
}

static void print_text(const struct explain *explain, struct bytes state)
{
    FILE *to = explain->ctl->out;
    line(to, "topic", explain->topic->name);
    if (explain->item.eval.rule)
        print_rule(to, &explain->item.eval);
    line(to, "row", state);
    line(to, "outcome", bytes_text(outcome_name(explain->item.outcome)));
    line(to, "cause", bytes_text(cause_name(explain->item.cause)));
    if (explain->statement_count)
        fputs("\nthe SQL, rolled back:\n", to);
    for (uint32_t i = 0; i < explain->statement_count; i++)
        fprintf(to, "  %.*s;\n", (int)explain->statements[i].len, (const char *)explain->statements[i].at);
}

int explain_print(struct explain *explain)
{
    struct buf row;
    bool good = row_state(explain, &row);
    if (good && explain->ctl->json)
        print_json(explain, buf_view(&row));
    else if (good)
        print_text(explain, buf_view(&row));
    free(row.at);
    return good ? CTL_GOOD : ctl_fail(CTL_INTERNAL, "out of memory");
}
