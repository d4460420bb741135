/* SPDX-License-Identifier: MIT */
/* record: names of sources, and walking the stored form of headers (details section 3). Pure. */
#include "idem/core/record.h"

#include <stdlib.h>

const char *source_name(enum source source)
{
    switch (source) {
    case SOURCE_KAFKA: return "kafka";
    case SOURCE_HTTP: return "http";
    case SOURCE_REPLAY: return "replay";
    case SOURCE_REDRIVE: return "redrive";
    }
    abort();
}

static bool take_u32(struct bytes headers, size_t *at, uint32_t *ret)
{
    if (headers.len - *at < 4)
        return false;
    const uint8_t *p = headers.at + *at;
    *ret = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    *at += 4;
    return true;
}

static bool take_bytes(struct bytes headers, size_t *at, uint32_t len, struct bytes *ret)
{
    if (headers.len - *at < len)
        return false;
    *ret = (struct bytes){headers.at + *at, len};
    *at += len;
    return true;
}

bool record_header_next(struct bytes headers, size_t *at, struct bytes *ret_name,
                        struct bytes *ret_value, bool *ret_null)
{
    uint32_t len;
    size_t place = *at;
    struct bytes name, value = {0};
    if (place == 0 && !take_u32(headers, &place, &len))      /* the count: the length says it too */
        return false;
    if (place >= headers.len || !take_u32(headers, &place, &len) ||
        !take_bytes(headers, &place, len, &name) || !take_u32(headers, &place, &len))
        return false;
    bool is_null = len == UINT32_MAX;
    if (!is_null && !take_bytes(headers, &place, len, &value))
        return false;
    *ret_name = name;
    *ret_value = value;
    *ret_null = is_null;
    *at = place;
    return true;
}
