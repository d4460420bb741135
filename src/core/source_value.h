/* SPDX-License-Identifier: MIT */
/* source_value: one value of a record, by its expression or field: the reading half of evaluate. Pure. */
#ifndef IDEM_CORE_SOURCE_VALUE_H
#define IDEM_CORE_SOURCE_VALUE_H

#include "idem/core/record.h"
#include "idem/core/rule.h"

struct input {
    const struct record *record;
    const struct doc *doc;
    struct arena *arena;
};

/* Untyped value of anything but EXPR_FIELD. CAUSE_UTF8: a header or record key that is no text. */
enum cause source_value(const struct expr *expr, struct input *in, struct value *ret);

/* Typed value of a field, default and minor units included. */
enum cause field_value(const struct rule *rule, const struct field *field, struct input *in,
                       struct value *ret);

/* Whether a field entry has neither a value nor a default. */
bool source_is_absent(const struct rule *rule, const struct expr *field_expr, struct input *in);

#endif
