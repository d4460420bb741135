/* SPDX-License-Identifier: MIT */
/* store_self: what the files of the store share: its state and the helpers that write statements. */
#ifndef IDEM_MYSQL_STORE_SELF_H
#define IDEM_MYSQL_STORE_SELF_H

#include "idem/adapter/mysql_store.h"
#include "idem/core/batch.h"

enum { RULES_CACHED = 32 };

/* Topics of idem_rule rows that no rule of the present file has. */
struct rule_topic {
    uint16_t id;                     /* 0 = free */
    uint16_t len;
    uint8_t topic[TOPIC_MAX];
};

struct mysql_store {
    struct store_port port;
    const struct database_config *database;
    const struct config *config;
    struct conn *conn;
    void *block;                     /* of sql and text */
    struct buf sql;                  /* the statement that is being written; half of max_allowed_packet at most */
    struct buf text;                 /* JSON on its way into a literal */
    struct item **sorted;            /* batch_max places: items in lock order */
    uint16_t *rule_ids;              /* beside sorted: idem_record.rule_id as read */
    bool *seen;                      /* beside sorted */
    uint32_t places;
    struct rule_topic topics[RULES_CACHED];
    uint32_t topic_next;             /* the place that is overwritten next */
    int64_t *look_us;                /* by topic: when to look at its indexes again, CLOCK_MONOTONIC; 0 = at once */
    bool in_doubt;
    uint64_t doubt_thread;           /* session whose COMMIT was not answered */
    int64_t doubt_us;                /* since when, CLOCK_MONOTONIC */
    uint64_t doubt_server;           /* conn_server() of it */
};

/* Empties the statement buffer and returns it. */
struct buf *store_sql(struct mysql_store *store);
/* Sends it; ERR_TOO_LARGE if it did not fit. */
enum err_class store_run(struct mysql_store *store, const char *where, struct err *err);
/* Copies the pointers into store->sorted; ERR_TOO_LARGE if there are more than places. */
enum err_class store_list(struct mysql_store *store, struct item *const *items, uint32_t count,
                          const char *where, struct err *err);

uint64_t cell_number(const struct conn_cell *cell);
int64_t cell_integer(const struct conn_cell *cell);

/* ---- rows_typed.c: values typed by the column (design 3 step 6) ------------------------------------------------ */

/* A record's value may be compared with the column and written into it. */
bool typed_fits(const struct column *column, const struct value *value);
/* The value for SET and INSERT. Must fit. */
void typed_literal(struct buf *sql, const struct column *column, const struct value *value);
/* The value as a string expression for a value list. Must fit. */
void typed_cell(struct buf *sql, const struct column *column, const struct value *value);
/* t.`column` = literal, bytes compared as well. Must fit. index: in a form that an index on the
 * column can serve. */
void typed_equals(struct buf *sql, struct bytes column, const struct column *type,
                  const struct value *value, bool index);
/* The same against cell `at` of the value list. */
void typed_equals_cell(struct buf *sql, struct bytes column, const struct column *type, uint32_t at,
                       bool index);
/* Cell `at` as a value for SET. */
void typed_set_cell(struct buf *sql, const struct column *type, uint32_t at);
/* t.`column` in the form that column_equals() takes. */
void typed_read(struct buf *sql, struct bytes column, const struct column *type);
/* Cell `at` of the value list v, as a column name. */
void typed_cell_name(struct buf *sql, uint32_t at);
/* t.`column` is one of the state names, bytewise. */
void typed_state_in(struct buf *sql, struct bytes column, const struct column *type,
                    const struct bytes *names, uint32_t count);
/* A state name as a literal for SET. */
void typed_state(struct buf *sql, const struct column *type, struct bytes name);

/* Value lists: (VALUES ..) v in the dialect of the server, with `columns` cells a row. */
void list_open(struct buf *sql, const struct conn *conn, uint32_t columns);
void list_row_open(struct buf *sql, const struct conn *conn, bool first);
void list_row_close(struct buf *sql, const struct conn *conn);
void list_close(struct buf *sql, const struct conn *conn, uint32_t columns);
/* Condition that leaves the heading row out; begins with AND, or is empty. */
void list_condition(struct buf *sql, const struct conn *conn);

/* ---- the ports' functions -------------------------------------------------------------------------------------- */

enum err_class store_settle(void *self, struct item *const *items, uint32_t count,
                            const uint8_t claim[CLAIM_LEN], bool *ret_committed, struct err *err);
extern const struct store_row_ops store_row_table;
extern const struct store_effect_ops store_effect_table;
extern const struct store_park_ops store_park_table;

enum err_class store_update(void *self, const struct rule *rule, uint32_t index,
                            struct item *const *items, uint32_t count, uint64_t *ret_affected,
                            struct err *err);
/* Appends the UPDATE of the rule's transition `index` for these items, 1 or more, whose values must fit; check asks the
 * server for the plan of the same text. */
void store_write_update(struct buf *sql, const struct conn *conn, const struct rule *rule, uint32_t index,
                        struct item *const *items, uint32_t count);
enum err_class store_lock(void *self, const struct rule *rule, uint32_t index,
                          struct item *const *items, uint32_t count, bool skip_locked,
                          struct arena *scratch, struct err *err);
enum err_class store_look(void *self, struct item *item, struct arena *scratch, struct err *err);
enum err_class store_letter(void *self, const struct item *item, struct bytes row_state,
                            bool *ret_new, struct err *err);
enum err_class store_records(void *self, struct item *const *items, uint32_t count,
                             const uint8_t claim[CLAIM_LEN], struct err *err);
enum err_class store_insert(void *self, const struct rule *rule, uint32_t index,
                            struct item *const *items, uint32_t count, struct err *err);
enum err_class store_insert_known(void *self, const struct rule *rule, uint32_t index,
                                  struct item *item, bool *ret_same, struct err *err);

/* effects_records.c: pieces of a record as it was delivered, each with its comma before it. */
void put_raw(struct buf *sql, struct bytes bytes);
void put_raw_or_null(struct buf *sql, struct bytes bytes, bool present);
void put_record_time(struct buf *sql, int64_t timestamp_ms);         /* UTC; NULL where DATETIME has no such moment */
struct bytes cut(struct bytes bytes, size_t len);

/* idem_record.expires_at of a status write now. */
void put_expires(struct buf *sql, const struct rule *rule);
/* ` WHERE bucket=0 AND biz_type=.. AND idem_key IN (..)` of items that share a biz_type. */
void put_keys(struct buf *sql, struct item *const *items, uint32_t count);
/* Length of the run of equal biz_types at the start of a sorted list. */
uint32_t same_type_run(struct item *const *items, uint32_t count);

#endif
