/* SPDX-License-Identifier: MIT */
/* value: one typed value taken from a record, in its canonical text. No binary floats anywhere: numbers
 * stay digits (details 1, "JSON numbers as text"). Texts are borrowed from the record or its arena. */
#ifndef IDEM_CORE_VALUE_H
#define IDEM_CORE_VALUE_H

#include "idem/base/arena.h"
#include "idem/core/doc.h"
#include "idem/core/outcome.h"

/* The first seven are the tags of details 3 (their numbers are hashed). */
enum value_tag {
    VALUE_ABSENT = 0,
    VALUE_NULL = 1,
    VALUE_TEXT = 2,       /* text: UTF-8 as is; also an untyped integer lexeme */
    VALUE_INTEGER = 3,    /* text: -?(0|[1-9][0-9]*), no -0 */
    VALUE_DECIMAL = 4,    /* text: exactly `scale` digits after the point, no point at scale 0, no -0.00 */
    VALUE_BOOL = 5,       /* text: true or false */
    VALUE_TIME = 6,       /* text: UTC YYYY-MM-DDTHH:MM:SS.ffffffZ */
    VALUE_OTHER = 7,      /* untyped number that is no integer, array, object: only `token` has a meaning,
                             wherever text is wanted it is CAUSE_FIELD_TYPE */
    VALUE_NOW = 8         /* the moment of writing; text: YYYY-MM-DD HH:MM:SS in the database's zone */
};

struct value {
    enum value_tag tag;
    struct bytes text;
    struct bytes token;   /* source token of an untyped pointer (its JSON form), else empty */
};

enum field_type { FIELD_TEXT, FIELD_INTEGER, FIELD_DECIMAL, FIELD_TIME };

enum time_format { TIME_RFC3339, TIME_UNIX, TIME_UNIX_MS, TIME_STRPTIME };

/* -?(0|[1-9][0-9]*), and not -0. */
bool integer_is_canonical(struct bytes text);

/* decimal: any JSON number or decimal text (`1e2`, `100.000`, `+` is refused) to exactly `scale` digits, no
 * leading zeros, -0 is 0. `shift` moves the point left first (minor units: 1999, shift 2 -> 19.99).
 * CAUSE_NONE and *ret (from the arena); CAUSE_FIELD_TYPE: not a number; CAUSE_SCALE: digits beyond the
 * scale; CAUSE_TOO_LONG: over 65 digits in all (`1e400`). An exhausted arena is CAUSE_TOO_LARGE. */
enum cause decimal_parse(struct bytes text, unsigned scale, unsigned shift, struct arena *arena,
                         struct bytes *ret);

/* <0, 0, >0; both are decimal or integer texts as the database or decimal_parse() gives them (any number of
 * digits, optional sign and point). Not for exponents. */
int decimal_compare(struct bytes a, struct bytes b);

/* A civil time to canonical UTC text of microseconds (digits beyond are cut). `zone_minutes` is the zone of a text
 * without one: a fixed offset; a named zone is resolved by the caller's table (see timezone.h). CAUSE_NONE,
 * CAUSE_FIELD_TYPE, CAUSE_TOO_LARGE (arena). `pattern` is used by TIME_STRPTIME only. */
struct time_zone;
enum cause time_parse(struct bytes text, enum time_format format, struct bytes pattern,
                      const struct time_zone *zone, struct arena *arena, struct bytes *ret);

#endif
