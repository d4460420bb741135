/* SPDX-License-Identifier: MIT */
/* key: see idem/core/key.h. Every length is written before what it measures, so that no two lists of parts hash
 * alike. */
#include "idem/core/key.h"

#include "idem/base/sha256.h"

static bool is_kept(uint8_t c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

void key_encode(struct bytes part, struct buf *buf)
{
    static const char digit[] = "0123456789ABCDEF";
    for (size_t i = 0; i < part.len; i++) {
        uint8_t c = part.at[i];
        if (is_kept(c)) {
            buf_char(buf, (char)c);
        } else {
            char escaped[3] = {'%', digit[c >> 4], digit[c & 15]};
            buf_put(buf, escaped, sizeof escaped);
        }
    }
}

void key_derive(bool has_scope, struct bytes scope, struct bytes biz_type, struct bytes number,
                struct bytes action, struct buf *buf)
{
    if (has_scope) {
        key_encode(scope, buf);
        buf_char(buf, ':');
    }
    buf_bytes(buf, biz_type);
    buf_char(buf, ':');
    key_encode(number, buf);
    buf_char(buf, ':');
    buf_bytes(buf, action);
}

bool key_is_supplied(struct bytes key)
{
    if (key.len < KEY_SUPPLIED_MIN || key.len > KEY_MAX)
        return false;
    for (size_t i = 0; i < key.len; i++)
        if (!is_kept(key.at[i]) && key.at[i] != ':')
            return false;
    return true;
}

bool key_part_is_valid(struct bytes part)
{
    if (part.len == 0 || part.len > BIZ_TYPE_MAX)
        return false;
    for (size_t i = 0; i < part.len; i++)
        if (!is_kept(part.at[i]))
            return false;
    return true;
}

/* ---- hashes ---------------------------------------------------------------------------------------------------- */

static void start(const char *tag)
{
    static const uint8_t one = 1;
    sha256_start();
    sha256_add(bytes_text(tag));
    sha256_add(bytes_of(&one, 1));
}

static void add_u32(uint32_t number)
{
    uint8_t at[4] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8),
                     (uint8_t)number};
    sha256_add(bytes_of(at, sizeof at));
}

static void add_length(struct bytes text)
{
    add_u32((uint32_t)text.len);
    sha256_add(text);
}

static void add_parts(const struct hash_part *parts, uint32_t count)
{
    add_u32(count);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t tag = (uint8_t)parts[i].tag;
        add_length(parts[i].name);
        sha256_add(bytes_of(&tag, 1));
        add_length(parts[i].value);
    }
}

void params_hash(uint32_t version, struct bytes action, const struct hash_part *parts, uint32_t count,
                 uint8_t ret_hash[PARAMS_HASH_LEN])
{
    start("idemd-params");
    add_u32(version);
    add_length(action);
    add_parts(parts, count);
    sha256_finish(ret_hash);
}

void identity_hash(const struct hash_part *parts, uint32_t count, uint8_t ret_hash[IDENTITY_HASH_LEN])
{
    uint8_t digest[SHA256_LEN];
    memset(ret_hash, 0, IDENTITY_HASH_LEN);
    if (count == 0)
        return;
    start("idemd-identity");
    add_parts(parts, count);
    sha256_finish(digest);
    memcpy(ret_hash, digest, IDENTITY_HASH_LEN);
}

void event_id(struct bytes biz_type, struct bytes key, const uint8_t identity[IDENTITY_HASH_LEN],
              struct bytes outcome, uint32_t index, char ret_hex[EVENT_ID_LEN])
{
    uint8_t digest[SHA256_LEN];
    start("idemd-event");
    add_length(biz_type);
    add_length(key);
    add_length(bytes_of(identity, IDENTITY_HASH_LEN));
    add_length(outcome);
    add_u32(index);
    sha256_finish(digest);
    bytes_hex(bytes_of(digest, EVENT_ID_LEN / 2), ret_hex);
}

void origin_hash_key(struct bytes biz_type, struct bytes key, struct bytes hash, struct bytes outcome,
                     uint8_t ret_hash[32])
{
    start("idemd-origin");
    add_length(BYTES_LIT("k"));
    add_length(biz_type);
    add_length(key);
    add_length(hash);
    add_length(outcome);
    sha256_finish(ret_hash);
}

static void big_endian(uint64_t number, uint8_t *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        at[i] = (uint8_t)(number >> (8 * (len - 1 - i)));
}

void origin_hash_record(struct bytes topic, int32_t partition, int64_t offset, int64_t timestamp_ms,
                        struct bytes payload, uint8_t ret_hash[32])
{
    uint8_t number[8];
    start("idemd-origin");
    add_length(BYTES_LIT("o"));
    add_length(topic);
    big_endian((uint32_t)partition, number, 4);
    add_length(bytes_of(number, 4));
    big_endian((uint64_t)offset, number, 8);
    add_length(bytes_of(number, 8));
    big_endian((uint64_t)timestamp_ms, number, 8);
    add_length(bytes_of(number, 8));
    add_length(payload);
    sha256_finish(ret_hash);
}
