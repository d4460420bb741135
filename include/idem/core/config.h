/* SPDX-License-Identifier: MIT */
/* config: the whole configuration file, compiled. Immutable after loading; every view lies in the loader's arena.
 * Keys and defaults: design section 6. Secrets are never held here: only the paths of their files. */
#ifndef IDEM_CORE_CONFIG_H
#define IDEM_CORE_CONFIG_H

#include "idem/core/rule.h"

struct property {
    struct bytes name, value;
    bool is_file;                /* name ended in `_file` (cut off here): value is a path, read at connect */
};

struct kafka_config {
    struct bytes brokers, group;
    const struct property *properties;
    uint32_t property_count;
};

enum tls_mode { TLS_OFF, TLS_REQUIRED, TLS_VERIFY };

struct database_config {
    struct bytes name;
    const struct bytes *hosts;   /* in the order of the file; 0 if socket is set */
    uint32_t host_count;
    uint16_t port;
    struct bytes socket;         /* path, or empty */
    struct bytes database, user;
    struct bytes password;       /* inline password (discouraged, allowed), or empty */
    struct bytes password_file;  /* path, or empty; read at every connect, one trailing newline cut */
    struct bytes time_zone;      /* as MySQL takes it: "+08:00" or a name */
    enum tls_mode tls;
    struct bytes tls_ca, tls_cert, tls_key;
    uint32_t lock_wait_ms;       /* 1 s .. 60 s, whole seconds for the server */
    uint32_t connections;        /* = workers, 1..64 */
};

struct limits_config {
    uint32_t rate;               /* records/s, 0 = none */
    uint32_t inflight;           /* records between poll and commit */
    uint64_t inflight_bytes;
    uint32_t parked_max;
    struct bytes dead_letter_share;  /* as written */
    uint32_t letter_ppm;         /* the same in millionths; 1000000 = the guard is off */
};

enum log_format { LOG_LOGFMT };
enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

struct log_config {
    enum log_format format;
    enum log_level level;
    uint32_t records;            /* 0 = changes only (no line for duplicate, ignored, processing); N = one in N of
                                    `first` and `duplicate`; 1 = all */
};

struct dead_letter_config {
    uint32_t payload_max;        /* bytes kept of a payload */
    struct bytes topic;          /* new letters are published there too, through the outbox; empty = not */
};

struct http_config {
    struct bytes listen;         /* as the file has it; empty = no listener */
    bool asked;                  /* the file names it; otherwise it is the default, and may be given up */
    struct bytes host;           /* a name or an address, without brackets */
    uint16_t port;               /* 0 = any free one */
    bool loopback;               /* surely: 127.x.y.z, ::1, localhost */
    struct bytes token_file;     /* path, or empty: whoever reaches the listener may read */
};

struct outbox_config {
    bool relay;                  /* we publish it; false: somebody else reads the table */
    uint32_t lease_ms;           /* how long a relay that died keeps the others waiting */
};

struct config {
    struct bytes path;           /* of the file, for messages */
    struct kafka_config kafka;
    struct database_config *databases;
    uint32_t database_count;
    struct topic *topics;
    uint32_t topic_count;
    uint32_t rule_count;         /* over all topics */
    uint32_t batch_max;          /* records */
    uint64_t batch_bytes;
    struct limits_config limits;
    struct log_config log;
    struct dead_letter_config dead_letter;
    struct outbox_config outbox;
    struct http_config http;
    uint32_t start_timeout_ms, stop_timeout_ms;
};

/* One mistake, ready for `FILE:LINE:COL: path: message`. line and column count from 1; 0 = the whole file. */
struct diagnostic {
    uint32_t line, column;
    char path[128];              /* topics.payment.callback.rules.paid.ttl */
    char message[256];
};

/* ---- loading: src/core/config/, fed by the YAML adapter ------------------------------------------------------- */

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

/* A parsed YAML tree. Children of a mapping alternate key, value. */
struct yaml_node {
    enum yaml_kind kind;
    bool plain;                  /* scalar without quotes */
    uint32_t line, column;       /* from 1 */
    struct bytes text;           /* scalar */
    const struct yaml_node *const *children;
    uint32_t count;              /* children; a mapping has count / 2 entries */
};

/* What the loader may ask the outside: environment variables and time zones. */
struct config_lookup {
    void *context;
    /* NULL if undefined; returned text is borrowed until the load ends. */
    const char *(*variable)(void *context, const char *name);
    /* false if there is no such zone; the table is taken from the arena. */
    bool (*zone)(void *context, struct bytes name, struct arena *arena, struct time_zone *ret);
};

struct diagnostics {
    struct diagnostic *list;     /* caller's array */
    uint32_t size, count;        /* count may pass size: the rest was counted, not kept */
};

/* Adds one, kept in the order of line and column; beyond `size` the last in the file are dropped. Cut to fit. */
void diagnostics_add(struct diagnostics *diagnostics, uint32_t line, uint32_t column, const char *path,
                     const char *message);

/* Appends `FILE:LINE:COL: path: message` without a newline; no numbers if it is about the whole file. */
void diagnostic_write(const struct diagnostic *diagnostic, struct bytes file, struct buf *buf);

/* Binds the tree to *ret. true if there is no mistake. All mistakes are reported in one run, in file order. */
bool config_bind(const struct yaml_node *root, struct bytes path, const struct config_lookup *lookup,
                 struct arena *arena, struct config *ret, struct diagnostics *diagnostics);

#endif
