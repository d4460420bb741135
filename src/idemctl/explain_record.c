/* SPDX-License-Identifier: MIT */
/* explain_record: the record that is explained, from a file or from Kafka, with the headers that were given by hand.
 * Nothing is ever cut: what is too large is refused. */
#include "explain.h"

#include "idem/adapter/kafka_fetch.h"

#include <stdlib.h>

enum { FILE_MAX = 256 << 20, PIECE = 64 << 10, FETCH_MS = 10000 };

/* ---- headers ----------------------------------------------------------------------------------------------------- */

static void put_u32(struct buf *buf, uint32_t number)
{
    uint8_t at[4] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number};
    buf_put(buf, at, sizeof at);
}

static void put_header(struct buf *buf, struct bytes name, struct bytes value, bool is_null)
{
    put_u32(buf, (uint32_t)name.len);
    buf_bytes(buf, name);
    put_u32(buf, is_null ? UINT32_MAX : (uint32_t)value.len);
    buf_bytes(buf, value);
}

static struct bytes given_name(const char *given)
{
    return bytes_of(given, (size_t)(strchr(given, '=') - given));
}

static bool is_given(const struct explain *explain, struct bytes key_name, struct bytes name)
{
    if (key_name.len && bytes_equal_nocase(key_name, name))
        return true;
    for (uint32_t i = 0; i < explain->given_count; i++)
        if (bytes_equal_nocase(given_name(explain->given[i]), name))
            return true;
    return false;
}

/* What came with the record, but for the names that are given, then what is given. */
static uint32_t put_all(const struct explain *explain, struct bytes own, struct bytes key_name, struct buf *buf)
{
    struct bytes name, value;
    size_t at = 0;
    bool is_null;
    uint32_t count = 0;
    while (record_header_next(own, &at, &name, &value, &is_null)) {
        if (is_given(explain, key_name, name))
            continue;
        put_header(buf, name, value, is_null);
        count++;
    }
    for (uint32_t i = 0; i < explain->given_count; i++, count++)
        put_header(buf, given_name(explain->given[i]), bytes_text(strchr(explain->given[i], '=') + 1), false);
    if (!key_name.len)
        return count;
    put_header(buf, key_name, bytes_text(explain->key), false);
    return count + 1;
}

/* A given header replaces those of its name; the others stay. */
static bool merge(struct explain *explain, struct bytes key_name)
{
    struct bytes own = explain->item.record.headers;
    struct buf buf, head;
    size_t size = 4 + own.len + 8 + key_name.len + (explain->key ? strlen(explain->key) : 0);
    for (uint32_t i = 0; i < explain->given_count; i++)
        size += 8 + strlen(explain->given[i]);
    uint8_t *block = malloc(size);
    if (!block)
        return false;
    buf_init(&buf, block, size);
    buf_init(&head, block, 4);
    put_u32(&buf, 0);
    uint32_t count = put_all(explain, own, key_name, &buf);
    put_u32(&head, count);
    free(explain->headers);      /* `own` may lie in it: not before it was copied */
    explain->headers = block;
    explain->item.record.headers = count ? buf_view(&buf) : (struct bytes){0};
    return !buf.overflow;
}

bool explain_give_key(struct explain *explain, const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->key_count; i++)
        if (rule->exprs[rule->keys[i]].source == EXPR_HEADER)
            return merge(explain, rule->exprs[rule->keys[i]].header);
    return false;
}

static int take_headers(struct explain *explain)
{
    explain->key = ctl_option(explain->ctl, "--key");
    explain->given = calloc((size_t)explain->ctl->argc + 1, sizeof *explain->given);
    if (!explain->given)
        return ctl_fail(CTL_INTERNAL, "out of memory");
    for (const char *given; (given = ctl_option(explain->ctl, "--header"));) {
        const char *value = strchr(given, '=');
        if (!value || value == given)
            return ctl_fail(CTL_USAGE, "--header %s: it is NAME=VALUE", given);
        explain->given[explain->given_count++] = given;
    }
    return CTL_GOOD;
}

/* ---- body -------------------------------------------------------------------------------------------------------- */

static int read_whole(struct explain *explain, FILE *file, const char *path)
{
    size_t len = 0, size = 0;
    while (!feof(file) && !ferror(file)) {
        if (len > FILE_MAX)
            return ctl_fail(CTL_USAGE, "%s: over %d MiB, no record is", path, FILE_MAX >> 20);
        if (size - len < PIECE) {
            size = 2 * size + PIECE;
            uint8_t *larger = realloc(explain->body, size);
            if (!larger)
                return ctl_fail(CTL_INTERNAL, "out of memory");
            explain->body = larger;
        }
        len += fread(explain->body + len, 1, size - len, file);
    }
    if (ferror(file))
        return ctl_fail(CTL_USAGE, "cannot read %s: %m", path);
    explain->item.record.has_value = true;
    explain->item.record.value = bytes_of(explain->body, len);
    return CTL_GOOD;
}

static int read_file(struct explain *explain, const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return ctl_fail(CTL_USAGE, "cannot read %s: %m", path);
    int code = read_whole(explain, file, path);
    fclose(file);
    explain->item.record.partition = -1;
    explain->item.record.offset = -1;
    explain->item.record.timestamp_ms = -1;
    return code;
}

static int read_kafka(struct explain *explain, const char *partition_text, const char *offset_text)
{
    uint64_t partition, offset;
    bool found = false;
    struct err err = {0};
    if (!partition_text || !offset_text || !ctl_number(partition_text, INT32_MAX, &partition) ||
        !ctl_number(offset_text, INT64_MAX, &offset))
        return CTL_USAGE;
    if (kafka_fetch_one(explain->ctl->config, explain->topic->name, (int32_t)partition, (int64_t)offset, FETCH_MS,
                        &explain->arena, &explain->item.record, &found, &err))
        return ctl_fail_err(&err);
    return found ? CTL_GOOD : ctl_fail(CTL_NOT_FOUND, "there is no record at %s/%s", partition_text, offset_text);
}

int explain_read_record(struct explain *explain)
{
    const char *file = ctl_option(explain->ctl, "--file");
    const char *partition = ctl_option(explain->ctl, "--partition"), *offset = ctl_option(explain->ctl, "--offset");
    int code = take_headers(explain);
    if (code == CTL_GOOD && ((file && (partition || offset)) || !ctl_arguments(explain->ctl, 0)))
        code = CTL_USAGE;
    if (code == CTL_GOOD)
        code = file ? read_file(explain, file) : read_kafka(explain, partition, offset);
    if (code == CTL_GOOD && explain->given_count && !merge(explain, (struct bytes){0}))
        code = ctl_fail(CTL_INTERNAL, "out of memory");
    explain->item.record.topic = explain->topic->name;
    explain->item.record.source = SOURCE_REPLAY;     /* never the same origin as what is stored */
    return code;
}

void explain_free_record(struct explain *explain)
{
    free(explain->body);
    free(explain->headers);
    free(explain->given);
}
