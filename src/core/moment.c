/* SPDX-License-Identifier: MIT */
/* moment: see idem/core/moment.h. The reading of civil times is time.c's; here it is only put into SQL's form. */
#include "idem/core/moment.h"

#include "idem/base/arena.h"
#include "idem/base/buf.h"
#include "idem/core/value.h"

enum { TEXT_MAX = 64 };

/* Any text that time_parse() takes, or fails. */
static bool canonical(struct bytes text, enum time_format format, char ret[MOMENT_LEN + 1])
{
    uint8_t block[TEXT_MAX];
    struct arena arena;
    struct bytes utc;
    arena_init(&arena, block, sizeof block);
    if (time_parse(text, format, (struct bytes){0}, NULL, &arena, &utc) != CAUSE_NONE)
        return false;
    memcpy(ret, utc.at, MOMENT_LEN);         /* without the Z */
    ret[10] = ' ';
    ret[MOMENT_LEN] = '\0';
    return true;
}

static bool civil(struct bytes text, char ret[MOMENT_LEN + 1])
{
    char block[TEXT_MAX];
    struct buf buf;
    if (canonical(text, TIME_RFC3339, ret))
        return true;
    buf_init(&buf, block, sizeof block);
    buf_bytes(&buf, text);
    buf_char(&buf, 'Z');
    return !buf.overflow && canonical(buf_view(&buf), TIME_RFC3339, ret);
}

bool moment_parse(struct bytes text, int64_t now_ms, char ret[MOMENT_LEN + 1])
{
    char block[TEXT_MAX];
    struct buf buf;
    uint64_t ms;
    if (!duration_parse(text, &ms))
        return civil(text, ret);
    if (now_ms < 0 || ms > (uint64_t)now_ms)
        return false;
    buf_init(&buf, block, sizeof block);
    buf_int(&buf, now_ms - (int64_t)ms);
    return canonical(buf_view(&buf), TIME_UNIX_MS, ret);
}
