/* SPDX-License-Identifier: MIT */
/* record: one delivered Kafka record as core sees it: borrowed views, nothing of librdkafka. */
#ifndef IDEM_CORE_RECORD_H
#define IDEM_CORE_RECORD_H

#include "idem/base/bytes.h"

enum source { SOURCE_KAFKA, SOURCE_HTTP, SOURCE_REPLAY, SOURCE_REDRIVE };

const char *source_name(enum source source);     /* the ENUM of idem_record.source */

struct record {
    enum source source;
    struct bytes topic;
    int32_t partition;
    int64_t offset;
    int64_t timestamp_ms;        /* -1 = none */
    bool has_key, has_value;     /* false: null (a tombstone has no value) */
    struct bytes key, value;
    struct bytes headers;        /* stored form, details 3: i32 count, then L(name), i32 length or -1, bytes;
                                    empty view = no headers */
};

/* Walks the stored form. Start with *at = 0; false at the end or if the form is broken. A null value gives
 * *ret_null = true. */
bool record_header_next(struct bytes headers, size_t *at, struct bytes *ret_name,
                        struct bytes *ret_value, bool *ret_null);

#endif
