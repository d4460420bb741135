/* SPDX-License-Identifier: MIT */
/* item: resetting an item before an attempt, and the shape of the business rows that are read for it. Pure. */
#include "idem/core/item.h"

void item_reset(struct item *item)
{
    item->outcome = OUTCOME_NONE;
    item->cause = CAUSE_NONE;
    item->first_outcome = OUTCOME_NONE;
    item->fingerprint_skipped = false;
    item->claimed = false;
    item->moved = false;
    item->inserts_known = 0;
    item->write = WRITE_NONE;
    item->known = (struct known_row){0};
    item->rows = NULL;
    item->response = (struct bytes){0};
    item->error_number = 0;
    item->error_text = (struct bytes){0};
    item->queue = (struct parked_queue){0};
    item->silent = false;
}

/* Position of the column, added if it is new. */
static uint8_t layout_add(struct row_layout *layout, struct bytes name, const struct column *type)
{
    for (uint32_t i = 0; i < layout->count; i++)
        if (bytes_equal(layout->names[i], name))
            return (uint8_t)i;
    layout->names[layout->count] = name;
    layout->types[layout->count] = type;
    return (uint8_t)layout->count++;
}

void row_layout(const struct rule *rule, uint32_t transition, struct row_layout *ret)
{
    const struct transition *t = &rule->transitions[transition];
    ret->count = 0;
    layout_add(ret, t->column, &t->column_type);
    for (uint32_t i = 0; i < t->where_count; i++)
        layout_add(ret, t->where[i].column, &t->where[i].type);
    if (transition == 0)
        for (uint32_t i = 0; i < rule->identity_count; i++)
            ret->identity_at[i] = layout_add(ret, rule->identity[i].column, &rule->identity[i].type);
    for (uint32_t i = 0; i < t->require_count; i++)
        ret->require_at[i] = layout_add(ret, t->require[i].column, &t->require[i].type);
}

static void stored_write(const struct column *type, const struct stored *stored, struct buf *buf)
{
    if (stored->is_null) {
        buf_text(buf, "null");
    } else if (type->kind == COLUMN_INTEGER) {
        buf_bytes(buf, stored->text);
    } else if (bytes_is_utf8(stored->text)) {
        buf_json_string(buf, stored->text);
    } else {
        /* Binary that is no text: JSON has no other honest form. */
        buf_char(buf, '"');
        buf_hex(buf, stored->text);
        buf_char(buf, '"');
    }
}

void row_write_json(const struct row_layout *layout, const struct row_view *row, struct buf *buf)
{
    buf_char(buf, '{');
    for (uint32_t i = 0; i < layout->count; i++) {
        if (i > 0)
            buf_char(buf, ',');
        buf_json_string(buf, layout->names[i]);
        buf_char(buf, ':');
        stored_write(layout->types[i], &row->columns[i], buf);
    }
    buf_char(buf, '}');
}
