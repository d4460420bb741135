/* SPDX-License-Identifier: MIT */
/* binder: what all parts of the loader share: where we are in the file, how a mistake is told, how a scalar, a
 * mapping and a table of options are read. Lives on the stack of config_bind(); owned by its caller's thread. */
#ifndef IDEM_CORE_CONFIG_BINDER_H
#define IDEM_CORE_CONFIG_BINDER_H

#include "idem/core/config.h"
#include "idem/core/moment.h"

enum {
    PATH_BYTES = 512,
    ENTRIES_MAX = 4096,         /* of one mapping or list: keeps the search for repeated keys short */
    OPTIONS_MAX = 32,           /* of one section */
    DATABASES_MAX = 64,
    TOPICS_MAX = 512,
    RULES_MAX = 1024,           /* of one topic; rule.index is 16 bits over all topics */
    LITERALS_MAX = 256,         /* states of a list, literals of a condition */
    ACTIONS_MAX = 32,           /* inserts, statements, events of one rule */
    TABLES_MAX = 256,           /* that the rules of one database write */
    COLUMN_NAME_MAX = 64        /* MySQL identifiers */
};

struct binder {
    struct arena *arena;
    const struct config_lookup *lookup;
    struct config *config;
    struct diagnostics *diagnostics;
    uint32_t mistakes;
    char path[PATH_BYTES];      /* NUL-terminated */
    size_t path_len;
};

/* ---- binder.c: place, mistakes, memory, mappings ---- */

/* Each returns the mark for path_leave(). Names are cleaned of control characters. */
size_t path_enter(struct binder *b, const char *name);
size_t path_enter_bytes(struct binder *b, struct bytes name);
size_t path_enter_index(struct binder *b, uint32_t index);
void path_leave(struct binder *b, size_t mark);

/* Always false, so that a check can end with it. node NULL: the whole file. */
bool mistake(struct binder *b, const struct yaml_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Zeroed array; NULL if the arena is exhausted (the load then fails as a whole). count 0 is valid. */
void *binder_array(struct binder *b, size_t count, size_t size);

/* Text for a message: at most 60 bytes, control characters replaced. Of a value always the text of the file, so
 * that what stands in an environment variable is never shown. */
struct quote {
    char text[72];
};
struct quote quote(struct bytes text);

/* Checks kind and size. */
bool is_mapping(struct binder *b, const struct yaml_node *node);

/* Walks a mapping: *index starts at 0; false at the end. Keys that are no text or stand there twice are told and
 * passed over. *ret_key lies in the arena. */
bool map_next(struct binder *b, const struct yaml_node *node, uint32_t *index, struct bytes *ret_key,
              const struct yaml_node **ret_value);

/* The items of a list; one scalar counts as a list of one. NULL (told) if it is neither or too long. */
const struct yaml_node *const *list_items(struct binder *b, const struct yaml_node *const *node, uint32_t max,
                                          uint32_t *ret_count);

/* Value node of a key; NULL if it is not there. Tells nothing. */
const struct yaml_node *map_find(const struct yaml_node *node, const char *name);

/* ---- scalar.c: texts and numbers ---- */

/* The text of a scalar, copied, with a whole ${VAR} replaced. path: ${VAR}/rest is allowed too. */
bool scalar_text(struct binder *b, const struct yaml_node *node, bool is_path, struct bytes *ret);
bool scalar_texts(struct binder *b, const struct yaml_node *node, uint32_t max, const struct bytes **ret,
                  uint32_t *ret_count);
bool scalar_bool(struct binder *b, const struct yaml_node *node, bool *ret);

bool number_parse(struct bytes text, uint64_t *ret);
bool size_parse(struct bytes text, uint64_t *ret_bytes);

/* Names: [A-Za-z0-9_$]{1,64}; a table may have one schema before a point. */
bool column_name_is_valid(struct bytes name);
bool table_name_is_valid(struct bytes name);
bool topic_name_is_valid(struct bytes name);
/* [A-Za-z0-9_.-]{1,max} */
bool word_is_valid(struct bytes name, size_t max);

/* ---- suggest.c ---- */

/* The nearest of `names` if it is near enough to be meant, else NULL. */
const char *suggest(struct bytes name, const char *const *names, uint32_t count);

/* ---- option.c: tables of options ---- */

enum option_kind {
    OPTION_TEXT,         /* struct bytes */
    OPTION_PATH,         /* struct bytes; ${VAR}/rest allowed */
    OPTION_NUMBER,       /* min..max */
    OPTION_DURATION,     /* ms, min..max */
    OPTION_SIZE,         /* bytes, min..max */
    OPTION_BOOL,         /* bool */
    OPTION_WORD,         /* an enum, by words */
    OPTION_NODE,         /* const struct yaml_node *: bound by the section itself */
    OPTION_LATER         /* not built yet: one of accepted[], else "not supported yet" */
};

struct word {
    const char *name;    /* NULL ends the list */
    int number;
};

struct option {
    const char *name;
    enum option_kind kind;
    bool required;
    bool nonempty;              /* OPTION_TEXT, OPTION_PATH: "" is a mistake */
    uint8_t width;              /* bytes of a number: 2, 4, 8 */
    size_t offset;              /* in the target */
    uint64_t min, max;
    const char *fallback;       /* written as in the file; NULL: nothing or zero */
    const struct word *words;
    const char *accepted[3];    /* OPTION_LATER; none: refused whatever stands there */
};

/* Reads `node` (NULL: every option takes its default) into *target. */
void section_bind(struct binder *b, const struct yaml_node *node, const struct option *options, uint32_t count,
                  void *target);

/* ---- section.c, servers.c ---- */
void sections_bind(struct binder *b, const struct yaml_node *root, const struct yaml_node **ret_topics);
void kafka_bind(struct binder *b, const struct yaml_node *node);
void databases_bind(struct binder *b, const struct yaml_node *node);

/* ---- http.c ---- */
void http_bind(struct binder *b, const struct yaml_node *node);      /* node NULL: defaults */

/* ---- topic.c; rule_bind.h has the rest ---- */
void topics_bind(struct binder *b, const struct yaml_node *node);

#endif
