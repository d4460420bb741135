/* SPDX-License-Identifier: MIT */
/* rule: the compiled configuration of topics, as design section 6 describes it. Immutable after loading; made by
 * the configuration loader in one arena, read by everybody. All counts are array lengths. An expr index refers to
 * rule.exprs; NO_EXPR = none. */
#ifndef IDEM_CORE_RULE_H
#define IDEM_CORE_RULE_H

#include "idem/core/column.h"
#include "idem/core/limits.h"
#include "idem/core/timezone.h"
#include "idem/core/value.h"

enum { NO_EXPR = UINT16_MAX };

enum expr_source { EXPR_POINTER, EXPR_HEADER, EXPR_META, EXPR_NOW, EXPR_FIELD, EXPR_LITERAL };
enum expr_meta { META_KEY, META_TOPIC, META_PARTITION, META_OFFSET, META_TIMESTAMP };

struct expr {
    enum expr_source source;
    struct bytes text;           /* as written: the name that the fingerprint hashes */
    struct pointer pointer;      /* EXPR_POINTER */
    struct bytes header;         /* EXPR_HEADER: the name */
    enum expr_meta meta;         /* EXPR_META */
    uint16_t field;              /* EXPR_FIELD: index into rule.fields */
    struct value literal;        /* EXPR_LITERAL: VALUE_TEXT */
    bool required;               /* absent, null or "" is `invalid`, field_missing (details 1, Absent values) */
    bool needs_text;             /* VALUE_OTHER and VALUE_BOOL are `invalid`, field_type */
};

enum match { MATCH_EQUAL, MATCH_NOT, MATCH_PRESENT, MATCH_ABSENT };

struct condition {
    uint16_t expr;               /* evaluated untyped */
    enum match match;
    const struct bytes *literals;   /* MATCH_EQUAL (any of them), MATCH_NOT (none of them) */
    uint32_t literal_count;
};

struct minor_unit {
    struct bytes literal;        /* "JPY" */
    uint8_t digits;
};

struct field {
    struct bytes name;
    uint16_t at;                 /* expr of the source, never EXPR_FIELD */
    enum field_type type;
    uint8_t scale;               /* FIELD_DECIMAL */
    bool minor;                  /* the value counts minor units */
    uint8_t minor_digits;        /* if minor_by is NO_EXPR */
    uint16_t minor_by;           /* expr, or NO_EXPR */
    const struct minor_unit *minor_units;
    uint32_t minor_count;
    bool has_minor_default;
    uint8_t minor_default;
    bool has_default;            /* replaces absent and null, not "" */
    struct value fallback;       /* typed and canonical, checked by the loader */
    enum time_format format;     /* FIELD_TIME */
    struct bytes pattern;
    const struct time_zone *zone;
};

/* A column and the value that goes into it or is compared with it. */
struct column_value {
    struct bytes column;
    uint16_t expr;
    struct column type;          /* read from the live schema at start; COLUMN_UNREAD before */
};

/* State names are compared bytewise. */
enum state_class { STATE_FROM, STATE_DONE, STATE_EARLY, STATE_CONFLICT, STATE_UNKNOWN };

struct transition {
    struct bytes table;
    const struct column_value *where;    /* in the order of the file */
    uint32_t where_count;
    struct bytes column;                 /* the state column */
    struct column column_type;
    const struct bytes *from, *already, *early, *conflict;
    uint32_t from_count, already_count, early_count, conflict_count;
    struct bytes to;
    bool self;                           /* `to` may stand in `from`: locked and classified first */
    const struct column_value *require;
    uint32_t require_count;
    const struct column_value *set;
    uint32_t set_count;
    struct bytes index;                  /* unique index that `where` covers; empty before the schema is read */
    bool set_based;                      /* affected rows prove each row (design 3 step 4d) */
};

struct insert {
    struct bytes table;
    const struct column_value *columns;
    uint32_t column_count;
    const uint16_t *unique;              /* indexes into columns */
    uint32_t unique_count;
};

/* A statement's text is cut at its :names: text[0] param[0] text[1] param[1] .. text[param_count]. */
struct statement {
    struct bytes sql;                    /* as written */
    const struct bytes *text;            /* param_count + 1 pieces */
    const uint16_t *params;              /* exprs */
    uint32_t param_count;
    uint64_t affected;
    enum outcome otherwise;              /* OUTCOME_STATE_CONFLICT, OUTCOME_REJECTED; OUTCOME_IGNORED = superseded */
};

struct member {
    struct bytes name;
    uint16_t expr;
};

/* A flat JSON object in rule order. */
struct template {
    const struct member *members;
    uint32_t count;
};

struct event {
    struct bytes topic, aggregate, type;
    uint16_t key;                        /* expr */
    struct template payload;
    struct template headers;             /* count 0 = NULL */
};

struct event_list {
    const struct event *events;
    uint32_t count;
};

/* How long a record of the rule waits in idem_parked (design section 6, `park`). All in milliseconds. */
struct park_config {
    uint64_t for_ms;                     /* 0 = nothing waits: a missing or early row is final at once */
    uint32_t attempts;                   /* at least so many retries before it is given up */
    uint64_t backoff_base_ms, backoff_cap_ms;
    uint64_t locked_after_ms;            /* a row held so long by somebody else: the record is parked */
};

struct rule {
    struct bytes name, topic;            /* the topic of its block */
    struct bytes biz_type, action;
    uint16_t index;                      /* within the configuration, dense */
    uint16_t database;                   /* index into config.databases */
    uint16_t id;                         /* idem_rule.id in that database; 0 before start */
    const struct expr *exprs;
    uint16_t expr_count;
    const struct condition *when;
    uint32_t when_count;
    const uint16_t *keys;                /* exprs in order; EXPR_HEADER = supplied, else derived */
    uint32_t key_count;
    uint16_t scope, biz_no;              /* exprs; scope may be NO_EXPR */
    const struct column_value *identity; /* sorted bytewise by column */
    uint32_t identity_count;
    bool identity_none;
    const struct field *fields;
    uint32_t field_count;
    uint16_t fingerprint_version;
    const uint16_t *fingerprint;         /* exprs */
    uint32_t fingerprint_count;
    int64_t ttl_s;                       /* seconds; -1 = forever */
    const struct transition *transitions;
    uint32_t transition_count;
    const struct insert *inserts;
    uint32_t insert_count;
    const struct statement *statements;
    uint32_t statement_count;
    struct event_list events;            /* of `first` */
    struct event_list on[OUTCOME_COUNT]; /* on.<outcome>.events */
    struct template respond;             /* has_respond false: response NULL */
    bool has_respond;
    struct park_config park;
    bool reads_now;                      /* some expr is EXPR_NOW */
};

enum body_kind { BODY_JSON, BODY_FORM };

struct topic {
    struct bytes name;
    uint16_t database;
    enum body_kind body;
    bool unmatched_ignored;              /* on_unmatched: ignore */
    uint32_t max_bytes;
    const struct pointer *exactly_one;   /* arrays that must hold one element */
    uint32_t exactly_one_count;
    struct rule *rules;                  /* first match wins; only the schema reader writes to them, before start */
    uint32_t rule_count;
    uint16_t index;                      /* within the configuration */
};

/* Which class `state` (NULL view at == NULL and is_null: a NULL column) belongs to. `from` wins over `to`. */
enum state_class transition_class(const struct transition *transition, struct bytes state, bool is_null);

#endif
