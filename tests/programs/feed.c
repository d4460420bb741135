/* SPDX-License-Identifier: MIT */
/*
 * feed: sends records from its standard input to one topic, for the demo, the tests and the
 * benchmark. It waits for every delivery report (acks=all, idempotent, in order) and ends with an
 * error if a single record was not taken. It knows nothing of callbacks.
 *
 *     feed --brokers HOST:PORT[,...] --topic NAME [--set PROPERTY=VALUE]...
 *
 * One record a line, four fields with a tab between:
 *
 *     PARTITION  KEY  HEADERS  VALUE
 *
 *     PARTITION  a number, or - to let the key decide
 *     KEY        bytes; \N alone is no key (null), nothing is a key of no bytes
 *     HEADERS    NAME=VALUE pairs with ; between, or nothing; a VALUE of \N alone is null
 *     VALUE      bytes; \N alone is a tombstone (null), nothing is a value of no bytes
 *
 * In KEY, NAME and VALUE stand \t \n \r \0 \\ for what they usually mean, \xHH for any byte; in
 * HEADERS also \; and \=. Everything else stands for itself. A line is at most 64 MiB.
 * Prints `sent=N` on stdout. Exit codes: 0 all delivered, 1 not all, 64 usage, 65 a bad line
 * (named on stderr; nothing after it is sent), 69 no broker.
 */
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLUSH_MS = 120000, PARTITION_MAX = 1000000 };

struct feed {
    rd_kafka_t *handle;
    const char *topic;
    uint64_t sent;
    uint64_t delivered;
    uint64_t failed;
    uint64_t line;
};

/* A field in place: `at` is NULL for null; decoded over its own text. */
struct field {
    char *at;
    size_t len;
};

static int usage(void)
{
    fputs("usage: feed --brokers HOST:PORT[,...] --topic NAME [--set PROPERTY=VALUE]...\n",
          stderr);
    return 64;
}

static int bad_line(const struct feed *feed, const char *why)
{
    fprintf(stderr, "feed: line %llu: %s\n", (unsigned long long)feed->line, why);
    return 65;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The byte that the escape at text[1] stands for and its length in *ret_used; -1 if it is none. */
static int escape_decode(const char *text, size_t len, size_t *ret_used)
{
    if (len < 2)
        return -1;
    *ret_used = 2;
    switch (text[1]) {
    case 't': return '\t';
    case 'n': return '\n';
    case 'r': return '\r';
    case '0': return 0;
    case '\\':
    case ';':
    case '=': return text[1];
    case 'x':
        if (len < 4 || hex_digit(text[2]) < 0 || hex_digit(text[3]) < 0)
            return -1;
        *ret_used = 4;
        return hex_digit(text[2]) * 16 + hex_digit(text[3]);
    default: return -1;
    }
}

/* Decodes a field over itself; -1 for an escape that means nothing. */
static int field_decode(struct field *field)
{
    if (field->len == 2 && !memcmp(field->at, "\\N", 2)) {
        *field = (struct field){NULL, 0};
        return 0;
    }
    size_t out = 0;
    for (size_t in = 0; in < field->len;) {
        if (field->at[in] != '\\') {
            field->at[out++] = field->at[in++];
            continue;
        }
        size_t used = 0;
        int byte = escape_decode(field->at + in, field->len - in, &used);
        if (byte < 0)
            return -1;
        field->at[out++] = (char)byte;
        in += used;
    }
    field->len = out;
    return 0;
}

/* Where the next `stop` stands that no backslash hides; `len` if there is none. */
static size_t field_find(const char *at, size_t len, char stop)
{
    for (size_t i = 0; i < len; i++) {
        if (at[i] == stop)
            return i;
        if (at[i] == '\\')
            i++;
    }
    return len;
}

/* Fills *ret_headers (NULL if there are none); the caller destroys it. */
static int headers_parse(struct field text, rd_kafka_headers_t **ret_headers)
{
    *ret_headers = NULL;
    if (!text.len)
        return 0;
    *ret_headers = rd_kafka_headers_new(8);
    while (text.len) {
        size_t pair = field_find(text.at, text.len, ';');
        size_t equals = field_find(text.at, pair, '=');
        if (equals == pair)
            return -1;
        struct field name = {text.at, equals};
        struct field value = {text.at + equals + 1, pair - equals - 1};
        if (field_decode(&name) || !name.at || !name.len || field_decode(&value))
            return -1;
        if (rd_kafka_header_add(*ret_headers, name.at, (ssize_t)name.len, value.at,
                                (ssize_t)value.len))
            return -1;
        size_t used = pair < text.len ? pair + 1 : pair;
        text.at += used;
        text.len -= used;
    }
    return 0;
}

/* The first three fields end at a tab each, the value at the end of the line. */
static int line_split(char *line, size_t len, struct field fields[4])
{
    for (int i = 0; i < 3; i++) {
        char *tab = memchr(line, '\t', len);
        if (!tab)
            return -1;
        fields[i] = (struct field){line, (size_t)(tab - line)};
        len -= fields[i].len + 1;
        line = tab + 1;
    }
    if (memchr(line, '\t', len))
        return -1;
    fields[3] = (struct field){line, len};
    return 0;
}

static int partition_parse(struct field field, int32_t *ret_partition)
{
    if (field.len == 1 && field.at[0] == '-') {
        *ret_partition = RD_KAFKA_PARTITION_UA;
        return 0;
    }
    char *end = NULL;
    errno = 0;
    long value = strtol(field.at, &end, 10);
    if (errno || !field.len || end != field.at + field.len || value < 0 || value > PARTITION_MAX)
        return -1;
    *ret_partition = (int32_t)value;
    return 0;
}

/* Hands the record to the library, waiting while its queue is full. */
static rd_kafka_resp_err_t record_send(struct feed *feed, int32_t partition, struct field key,
                                       struct field value, const rd_kafka_headers_t *headers)
{
    for (;;) {
        rd_kafka_headers_t *copy = headers ? rd_kafka_headers_copy(headers) : NULL;
        rd_kafka_vu_t parts[] = {
            {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = feed->topic},
            {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = partition},
            {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {key.at, key.len}},
            {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {value.at, value.len}},
            {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
            {.vtype = RD_KAFKA_VTYPE_HEADERS, .u.headers = copy},
        };
        size_t count = sizeof(parts) / sizeof(parts[0]) - (copy ? 0 : 1);
        rd_kafka_error_t *error = rd_kafka_produceva(feed->handle, parts, count);
        if (!error) {
            feed->sent++;
            return RD_KAFKA_RESP_ERR_NO_ERROR;
        }
        rd_kafka_resp_err_t code = rd_kafka_error_code(error);
        rd_kafka_error_destroy(error);
        /* On failure the headers are still ours. */
        if (copy)
            rd_kafka_headers_destroy(copy);
        if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            return code;
        rd_kafka_poll(feed->handle, 100);
    }
}

static int line_send(struct feed *feed, char *line, size_t len)
{
    struct field fields[4];
    int32_t partition = 0;
    rd_kafka_headers_t *headers = NULL;
    if (line_split(line, len, fields))
        return bad_line(feed, "not four fields with tabs between");
    if (partition_parse(fields[0], &partition))
        return bad_line(feed, "the partition is neither a number nor -");
    if (field_decode(&fields[1]) || field_decode(&fields[3]))
        return bad_line(feed, "an escape that means nothing");
    int status = 0;
    if (headers_parse(fields[2], &headers)) {
        status = bad_line(feed, "headers are not NAME=VALUE;NAME=VALUE");
    } else {
        rd_kafka_resp_err_t err = record_send(feed, partition, fields[1], fields[3], headers);
        if (err) {
            fprintf(stderr, "feed: line %llu: %s\n", (unsigned long long)feed->line,
                    rd_kafka_err2str(err));
            status = 1;
        }
    }
    if (headers)
        rd_kafka_headers_destroy(headers);
    return status;
}

static void on_delivery(rd_kafka_t *handle, const rd_kafka_message_t *message, void *opaque)
{
    struct feed *feed = opaque;
    (void)handle;
    if (!message->err) {
        feed->delivered++;
        return;
    }
    /* One line tells why; a hundred thousand tell no more. */
    if (feed->failed++ == 0)
        fprintf(stderr, "feed: %s\n", rd_kafka_err2str(message->err));
}

static int input_send(struct feed *feed)
{
    char *line = NULL;
    size_t room = 0;
    int status = 0;
    ssize_t got;
    while (!status && (got = getline(&line, &room, stdin)) >= 0) {
        size_t len = (size_t)got;
        if (len && line[len - 1] == '\n')
            line[--len] = 0;
        feed->line++;
        status = line_send(feed, line, len);
        rd_kafka_poll(feed->handle, 0);
    }
    if (ferror(stdin)) {
        perror("feed: standard input");
        status = 1;
    }
    free(line);
    return status;
}

static bool conf_set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char text[512];
    if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) == RD_KAFKA_CONF_OK)
        return true;
    fprintf(stderr, "feed: %s\n", text);
    return false;
}

/* --set PROPERTY=VALUE */
static bool conf_set_pair(rd_kafka_conf_t *conf, const char *pair)
{
    char name[128];
    const char *equals = strchr(pair, '=');
    if (!equals || (size_t)(equals - pair) >= sizeof(name))
        return false;
    memcpy(name, pair, (size_t)(equals - pair));
    name[equals - pair] = 0;
    return conf_set(conf, name, equals + 1);
}

/* Our settings first, so that --set may replace them. */
static bool args_parse(int argc, char **argv, struct feed *feed, rd_kafka_conf_t *conf)
{
    bool brokers = false;
    if (!conf_set(conf, "acks", "all") || !conf_set(conf, "enable.idempotence", "true") ||
        !conf_set(conf, "linger.ms", "5") || !conf_set(conf, "message.max.bytes", "67108864") ||
        !conf_set(conf, "message.timeout.ms", "60000") || !conf_set(conf, "log_level", "3"))
        return false;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            return false;
        if (!strcmp(argv[i], "--brokers"))
            brokers = conf_set(conf, "bootstrap.servers", argv[i + 1]);
        else if (!strcmp(argv[i], "--topic"))
            feed->topic = argv[i + 1];
        else if (strcmp(argv[i], "--set") || !conf_set_pair(conf, argv[i + 1]))
            return false;
    }
    return brokers && feed->topic;
}

/* Before the input is read: without a broker there is no use in it. */
static bool broker_answers(rd_kafka_t *handle)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_resp_err_t err = rd_kafka_metadata(handle, 0, NULL, &metadata, 30000);
    if (err) {
        fprintf(stderr, "feed: no broker answers: %s\n", rd_kafka_err2str(err));
        return false;
    }
    rd_kafka_metadata_destroy(metadata);
    return true;
}

int main(int argc, char **argv)
{
    struct feed feed = {0};
    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_opaque(conf, &feed);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    if (!args_parse(argc, argv, &feed, conf)) {
        rd_kafka_conf_destroy(conf);
        return usage();
    }
    feed.handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (!feed.handle) {
        rd_kafka_conf_destroy(conf);
        fprintf(stderr, "feed: %s\n", text);
        return 64;
    }
    if (!broker_answers(feed.handle)) {
        rd_kafka_destroy(feed.handle);
        return 69;
    }
    int status = input_send(&feed);
    rd_kafka_flush(feed.handle, FLUSH_MS);
    printf("sent=%llu\n", (unsigned long long)feed.delivered);
    if (!status && feed.delivered != feed.sent) {
        fprintf(stderr, "feed: %llu of %llu records were not delivered\n",
                (unsigned long long)(feed.sent - feed.delivered), (unsigned long long)feed.sent);
        status = 1;
    }
    rd_kafka_destroy(feed.handle);
    return status;
}
