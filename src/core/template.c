/* SPDX-License-Identifier: MIT */
/* template: values as JSON (details 1, "JSON that we write"), and which state a transition sees. Pure. */
#include "idem/core/evaluate.h"

void value_write_json(const struct value *value, struct bytes now, struct buf *buf)
{
    switch (value->tag) {
    case VALUE_ABSENT:
    case VALUE_NULL:
        buf_text(buf, "null");
        return;
    case VALUE_NOW:
        buf_json_string(buf, now);
        return;
    case VALUE_OTHER:
        buf_bytes(buf, value->token);
        return;
    case VALUE_INTEGER:
        buf_bytes(buf, value->text);
        return;
    case VALUE_TEXT:
    case VALUE_BOOL:
        if (value->token.len) {      /* an untyped pointer: as it stood */
            buf_bytes(buf, value->token);
            return;
        }
        break;
    case VALUE_DECIMAL:
    case VALUE_TIME:
        break;
    }
    buf_json_string(buf, value->text);
}

void template_write(const struct template *template, const struct rule *rule, const struct value *values,
                    struct bytes now, struct buf *buf)
{
    (void)rule;
    buf_char(buf, '{');
    for (uint32_t i = 0; i < template->count; i++) {
        if (i > 0)
            buf_char(buf, ',');
        buf_json_string(buf, template->members[i].name);
        buf_char(buf, ':');
        value_write_json(&values[template->members[i].expr], now, buf);
    }
    buf_char(buf, '}');
}

static bool among(struct bytes state, const struct bytes *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (bytes_equal(state, list[i]))
            return true;
    return false;
}

enum state_class transition_class(const struct transition *transition, struct bytes state, bool is_null)
{
    if (is_null)
        return STATE_UNKNOWN;
    if (among(state, transition->from, transition->from_count))
        return STATE_FROM;
    if (bytes_equal(state, transition->to) || among(state, transition->already, transition->already_count))
        return STATE_DONE;
    if (among(state, transition->early, transition->early_count))
        return STATE_EARLY;
    if (among(state, transition->conflict, transition->conflict_count))
        return STATE_CONFLICT;
    return STATE_UNKNOWN;
}
