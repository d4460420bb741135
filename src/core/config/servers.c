/* SPDX-License-Identifier: MIT */
/* servers: the sections that say where Kafka and the databases are. Secrets are kept as they stand or as the path
 * of their file; no message repeats one. */
#include "binder.h"

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

struct kafka_target {
    struct bytes brokers, group;
    const struct yaml_node *properties;
};

static const struct option kafka_options[] = {
    {.name = "brokers", .kind = OPTION_TEXT, .offset = offsetof(struct kafka_target, brokers), .required = true,
     .nonempty = true},
    {.name = "group", .kind = OPTION_TEXT, .offset = offsetof(struct kafka_target, group), .required = true,
     .nonempty = true},
    {.name = "properties", .kind = OPTION_NODE, .offset = offsetof(struct kafka_target, properties)},
};

/* What idemd must decide itself, or nothing is exactly once. */
static const struct {
    const char *name, *instead;
} owned[] = {
    {"bootstrap.servers", "kafka.brokers says it"},     {"metadata.broker.list", "kafka.brokers says it"},
    {"group.id", "kafka.group says it"},                {"enable.auto.commit", "idemd commits by itself"},
    {"enable.auto.offset.store", "idemd stores offsets by itself"},
    {"auto.offset.reset", "idemd never skips records"},
};

static bool property_twice(const struct property *list, uint32_t count, struct bytes name)
{
    for (uint32_t i = 0; i < count; i++)
        if (bytes_equal(list[i].name, name))
            return true;
    return false;
}

static bool property_bind(struct binder *b, const struct yaml_node *key_node, const struct yaml_node *value,
                          struct property *ret)
{
    static const char suffix[] = "_file";
    size_t suffix_len = sizeof(suffix) - 1;
    if (ret->name.len > suffix_len && memcmp(ret->name.at + ret->name.len - suffix_len, suffix, suffix_len) == 0) {
        ret->is_file = true;
        ret->name.len -= suffix_len;
    }
    for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++)
        if (bytes_equal(ret->name, bytes_text(owned[i].name)))
            return mistake(b, key_node, "cannot be set here: %s", owned[i].instead);
    return scalar_text(b, value, ret->is_file, &ret->value);
}

static void properties_bind(struct binder *b, const struct yaml_node *node)
{
    struct bytes key;
    const struct yaml_node *value;
    uint32_t index = 0, count = 0;
    if (!is_mapping(b, node))
        return;
    struct property *list = binder_array(b, node->count / 2, sizeof(*list));
    while (list && map_next(b, node, &index, &key, &value)) {
        const struct yaml_node *key_node = node->children[index - 2];
        struct property made = {.name = key};
        size_t mark = path_enter_bytes(b, key);
        bool good = property_bind(b, key_node, value, &made);
        if (good && property_twice(list, count, made.name))
            mistake(b, key_node, "is given twice, with and without _file");
        else if (good)
            list[count++] = made;
        path_leave(b, mark);
    }
    b->config->kafka.properties = list;
    b->config->kafka.property_count = count;
}

void kafka_bind(struct binder *b, const struct yaml_node *node)
{
    struct kafka_target target = {0};
    size_t mark = path_enter(b, "kafka");
    section_bind(b, node, kafka_options, COUNT_OF(kafka_options), &target);
    size_t inner = path_enter(b, "group");
    if (target.group.len > GROUP_MAX)
        mistake(b, map_find(node, "group"), "is longer than %d bytes", GROUP_MAX);
    path_leave(b, inner);
    b->config->kafka.brokers = target.brokers;
    b->config->kafka.group = target.group;
    inner = path_enter(b, "properties");
    if (target.properties)
        properties_bind(b, target.properties);
    path_leave(b, inner);
    path_leave(b, mark);
}

struct database_target {
    struct database_config made;
    const struct yaml_node *host, *tls;
};

#define AT(member) offsetof(struct database_target, made.member)

static const struct option database_options[] = {
    {.name = "host", .kind = OPTION_NODE, .offset = offsetof(struct database_target, host)},
    {.name = "port", .kind = OPTION_NUMBER, .width = 2, .offset = AT(port), .min = 1, .max = 65535,
     .fallback = "3306"},
    {.name = "socket", .kind = OPTION_PATH, .offset = AT(socket)},
    {.name = "database", .kind = OPTION_TEXT, .offset = AT(database), .required = true, .nonempty = true},
    {.name = "user", .kind = OPTION_TEXT, .offset = AT(user), .required = true, .nonempty = true},
    {.name = "password", .kind = OPTION_TEXT, .offset = AT(password)},
    {.name = "password_file", .kind = OPTION_PATH, .offset = AT(password_file)},
    {.name = "time_zone", .kind = OPTION_TEXT, .offset = AT(time_zone), .fallback = "+00:00"},
    {.name = "tls", .kind = OPTION_NODE, .offset = offsetof(struct database_target, tls)},
    {.name = "lock_wait", .kind = OPTION_DURATION, .width = 4, .offset = AT(lock_wait_ms), .min = 1000,
     .max = 60000, .fallback = "3s"},
    {.name = "connections", .kind = OPTION_NUMBER, .width = 4, .offset = AT(connections), .min = 1, .max = 64,
     .fallback = "4"},
};

enum { TLS_UNSET = -1 };

static const struct word tls_modes[] = {
    {"off", TLS_OFF}, {"required", TLS_REQUIRED}, {"verify", TLS_VERIFY}, {NULL, 0}};

struct tls_target {
    int mode;
    struct bytes ca, cert, key;
};

static const struct option tls_options[] = {
    {.name = "mode", .kind = OPTION_WORD, .offset = offsetof(struct tls_target, mode), .words = tls_modes},
    {.name = "ca", .kind = OPTION_PATH, .offset = offsetof(struct tls_target, ca)},
    {.name = "cert", .kind = OPTION_PATH, .offset = offsetof(struct tls_target, cert)},
    {.name = "key", .kind = OPTION_PATH, .offset = offsetof(struct tls_target, key)},
};

static bool host_is_loopback(struct bytes host)
{
    return bytes_equal_nocase(host, BYTES_LIT("localhost")) || bytes_equal(host, BYTES_LIT("::1")) ||
           (host.len > 4 && memcmp(host.at, "127.", 4) == 0);
}

/* Details 1, TLS modes: off for a socket or a loopback address, verify elsewhere. */
static enum tls_mode tls_default(const struct database_config *database)
{
    if (database->socket.len > 0)
        return TLS_OFF;
    for (uint32_t i = 0; i < database->host_count; i++)
        if (!host_is_loopback(database->hosts[i]))
            return TLS_VERIFY;
    return TLS_OFF;
}

static void tls_bind(struct binder *b, const struct yaml_node *node, struct database_config *made)
{
    struct tls_target target = {.mode = TLS_UNSET};
    size_t mark = path_enter(b, "tls");
    if (node)
        section_bind(b, node, tls_options, COUNT_OF(tls_options), &target);
    if ((target.cert.len > 0) != (target.key.len > 0))
        mistake(b, node, "cert and key belong together");
    path_leave(b, mark);
    made->tls = target.mode == TLS_UNSET ? tls_default(made) : (enum tls_mode)target.mode;
    made->tls_ca = target.ca;
    made->tls_cert = target.cert;
    made->tls_key = target.key;
}

static void hosts_bind(struct binder *b, const struct yaml_node *node, struct database_config *made)
{
    size_t mark = path_enter(b, "host");
    if (scalar_texts(b, node, 16, &made->hosts, &made->host_count))
        for (uint32_t i = 0; i < made->host_count; i++) {
            struct bytes host = made->hosts[i];
            if (host.len == 0 || host.len > 255 || memchr(host.at, ' ', host.len) ||
                memchr(host.at, '/', host.len))
                mistake(b, node, "\"%s\" is no host name or address", quote(host).text);
        }
    path_leave(b, mark);
}

static bool two_digits(const uint8_t *at, unsigned *ret)
{
    if (at[0] < '0' || at[0] > '9' || at[1] < '0' || at[1] > '9')
        return false;
    *ret = (unsigned)(at[0] - '0') * 10 + (unsigned)(at[1] - '0');
    return true;
}

/* What `SET time_zone` takes: -13:59..+14:00, or a name that the server knows. SYSTEM would follow the machine. */
static bool time_zone_is_valid(struct bytes zone)
{
    unsigned hours, minutes;
    if (zone.len == 0 || zone.len > 64 || bytes_equal_nocase(zone, BYTES_LIT("SYSTEM")))
        return false;
    if (zone.at[0] == '+' || zone.at[0] == '-')
        return zone.len == 6 && zone.at[3] == ':' && two_digits(zone.at + 1, &hours) &&
               two_digits(zone.at + 4, &minutes) && minutes < 60 &&
               hours * 60 + minutes <= (zone.at[0] == '+' ? 14 * 60u : 14 * 60u - 1);
    for (size_t i = 0; i < zone.len; i++) {
        uint8_t c = zone.at[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!letter && (i == 0 || (!memchr("0123456789_/+-", c, 14))))
            return false;
    }
    return true;
}

static void database_check(struct binder *b, const struct yaml_node *node, const struct database_target *target)
{
    const struct database_config *made = &target->made;
    if (target->host && made->socket.len > 0)
        mistake(b, target->host, "host and socket exclude each other");
    if (!target->host && made->socket.len == 0)
        mistake(b, node, "host or socket is required");
    if (made->password.len > 0 && made->password_file.len > 0)
        mistake(b, map_find(node, "password"), "password and password_file exclude each other");
    size_t mark = path_enter(b, "time_zone");
    if (!time_zone_is_valid(made->time_zone)) {
        const struct yaml_node *zone = map_find(node, "time_zone");
        mistake(b, zone, "\"%s\" is no time zone like \"+08:00\" or Asia/Shanghai",
                zone ? quote(zone->text).text : "");
    }
    path_leave(b, mark);
    mark = path_enter(b, "lock_wait");
    if (made->lock_wait_ms % 1000 != 0)
        mistake(b, map_find(node, "lock_wait"), "must be whole seconds (1s..60s, default 3s)");
    path_leave(b, mark);
    mark = path_enter(b, "database");
    if (made->database.len > 0 && !column_name_is_valid(made->database))
        mistake(b, map_find(node, "database"), "\"%s\" is no name of letters, digits, _ and $ (64 at most)",
                quote(made->database).text);
    path_leave(b, mark);
}

void databases_bind(struct binder *b, const struct yaml_node *node)
{
    struct bytes name;
    const struct yaml_node *value;
    uint32_t index = 0, count = 0;
    size_t mark = path_enter(b, "databases");
    struct database_config *list = NULL;
    if (is_mapping(b, node) && node->count == 0)
        mistake(b, node, "must name at least one database");
    if (node->kind == YAML_MAPPING && node->count / 2 > DATABASES_MAX)
        mistake(b, node, "has more than %d entries", DATABASES_MAX);
    else if (node->kind == YAML_MAPPING)
        list = binder_array(b, node->count / 2, sizeof(*list));
    while (list && map_next(b, node, &index, &name, &value)) {
        struct database_target target = {0};
        size_t inner = path_enter_bytes(b, name);
        if (!word_is_valid(name, 64))
            mistake(b, node->children[index - 2], "a database's name is 1..64 of A-Z a-z 0-9 _ . -");
        section_bind(b, value, database_options, COUNT_OF(database_options), &target);
        target.made.name = name;
        if (value->kind == YAML_MAPPING) {
            if (target.host)
                hosts_bind(b, target.host, &target.made);
            tls_bind(b, target.tls, &target.made);
            database_check(b, value, &target);
        }
        list[count++] = target.made;
        path_leave(b, inner);
    }
    b->config->databases = list;
    b->config->database_count = count;
    path_leave(b, mark);
}
