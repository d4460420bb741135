/* SPDX-License-Identifier: MIT */
/* rule_bind: the inside of binding one rule: its table of values, and its parts. */
#ifndef IDEM_CORE_CONFIG_RULE_BIND_H
#define IDEM_CORE_CONFIG_RULE_BIND_H

#include "binder.h"

/* What a place allows a value to be. */
enum place {
    PLACE_ANY = 0,
    PLACE_REQUIRED = 1,      /* absent, null and "" are `invalid`, field_missing */
    PLACE_TEXT = 2,          /* booleans, arrays and objects are `invalid`, field_type */
    PLACE_NO_NOW = 4,
    PLACE_NO_LITERAL = 8,    /* a literal here can only be a slip of the pen */
    PLACE_NO_FIELD = 16,
    PLACE_ROW = PLACE_REQUIRED | PLACE_TEXT | PLACE_NO_NOW
};

struct rule_binder {
    struct binder *b;
    struct rule *rule;
    struct expr exprs[EXPRS_MAX];
    uint32_t expr_count;
    struct field *fields;
    uint32_t field_count;
};

/* expr.c: the value grammar. NO_EXPR and a mistake, or an index of rb->exprs. */
uint16_t expr_bind(struct rule_binder *rb, const struct yaml_node *node, unsigned place);
uint16_t expr_bind_text(struct rule_binder *rb, const struct yaml_node *node, struct bytes text, unsigned place);
/* true if it is a JSON Pointer of RFC 6901. */
bool pointer_bind(struct binder *b, const struct yaml_node *node, struct bytes text, struct pointer *ret);

/* A mapping column: value, in the order of the file. */
void columns_bind(struct rule_binder *rb, const struct yaml_node *node, uint32_t max, unsigned place,
                  const struct column_value **ret, uint32_t *ret_count);

/* A flat mapping name: value. */
void template_bind(struct rule_binder *rb, const struct yaml_node *node, struct template *ret);

/* The same of the member `name`, which mistakes then name too. node NULL: it is not given, nothing is set. */
uint16_t expr_part(struct rule_binder *rb, const char *name, const struct yaml_node *node, unsigned place);
void columns_part(struct rule_binder *rb, const char *name, const struct yaml_node *node, uint32_t max, unsigned place,
                  const struct column_value **ret, uint32_t *ret_count);
void template_part(struct rule_binder *rb, const char *name, const struct yaml_node *node, struct template *ret);

/* A list of at most ACTIONS_MAX things of `size` bytes, zeroed, then bound in order. NULL: none, *ret_count = 0. */
typedef void action_bind(struct rule_binder *rb, const struct yaml_node *node, void *ret);
void *actions_bind(struct rule_binder *rb, const struct yaml_node *node, size_t size, action_bind *bind,
                   uint32_t *ret_count);

void when_bind(struct rule_binder *rb, const struct yaml_node *node);                    /* when.c */
void fields_bind(struct rule_binder *rb, const struct yaml_node *node);                  /* field.c */
void transitions_bind(struct rule_binder *rb, const struct yaml_node *one, const struct yaml_node *many);
                                                                                          /* transition.c */
void inserts_bind(struct rule_binder *rb, const struct yaml_node *node);                 /* effect.c */
void statements_bind(struct rule_binder *rb, const struct yaml_node *node);              /* statement.c */
void events_bind(struct rule_binder *rb, const struct yaml_node *node, struct event_list *ret);   /* effect.c */
void on_bind(struct rule_binder *rb, const struct yaml_node *node);
void park_bind(struct rule_binder *rb, const struct yaml_node *node);       /* park.c; node NULL: the defaults */
void rule_bind(struct binder *b, const struct yaml_node *node, struct rule *rule);       /* rule.c */

/* Table that a statement writes: the word after UPDATE, INSERT INTO or DELETE FROM; empty if unclear. */
struct bytes statement_table(struct bytes sql);

/* order.c: tables in one order over all rules of each database. */
void table_order_check(struct binder *b, const struct yaml_node *topics);

#endif
