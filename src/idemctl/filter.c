/* SPDX-License-Identifier: MIT */
/* filter: see filter.h. What is no value of its kind is refused before any database is asked. */
#include "filter.h"

#include "idem/core/moment.h"

#include "idem/adapter/clock.h"

static bool is_word(const char *const *words, const char *value)
{
    for (; *words; words++)
        if (strcmp(*words, value) == 0)
            return true;
    return false;
}

static int refuse_word(const struct filter *filter, const char *value)
{
    char block[512];
    struct buf known;
    buf_init(&known, block, sizeof block);
    for (const char *const *word = filter->words; *word; word++) {
        buf_char(&known, ' ');
        buf_text(&known, *word);
    }
    return ctl_fail(CTL_USAGE, "%s %s: it is one of%.*s", filter->option, value, (int)known.len, known.at);
}

static int put_moment(const struct filter *filter, const char *value, struct buf *sql)
{
    char moment[MOMENT_LEN + 1];
    if (!moment_parse(bytes_text(value), clock_env.wall_ms(clock_env.self), moment))
        return ctl_fail(CTL_USAGE, "%s %s: no point in time; it is 2026-01-01T00:00:00Z, 2026-01-01T08:00:00+08:00, "
                        "2026-01-01 00:00:00 (UTC), or so long ago: 90s, 30m, 2h, 7d", filter->option, value);
    buf_printf(sql, " AND %s%s'%s'", filter->column, filter->kind == FILTER_SINCE ? ">=" : "<", moment);
    return CTL_GOOD;
}

static int put_filter(const struct filter *filter, const char *value, struct buf *sql)
{
    switch (filter->kind) {
    case FILTER_WORD:
        if (!is_word(filter->words, value))
            return refuse_word(filter, value);
        break;
    case FILTER_SINCE:
    case FILTER_UNTIL:
        return put_moment(filter, value, sql);
    case FILTER_TEXT:
        break;
    }
    buf_printf(sql, " AND %s=", filter->column);
    sql_string(sql, bytes_text(value));
    return CTL_GOOD;
}

int filter_take(struct ctl *ctl, const struct filter *list, uint32_t count, struct buf *sql)
{
    int code = CTL_GOOD;
    for (uint32_t i = 0; i < count && code == CTL_GOOD; i++) {
        const char *value = ctl_option(ctl, list[i].option);
        if (value)
            code = put_filter(&list[i], value, sql);
    }
    if (code == CTL_GOOD && sql->overflow)
        code = ctl_fail(CTL_USAGE, "the options are too long");
    return code;
}

int filter_take_limit(struct ctl *ctl, uint64_t usual, uint64_t max, uint64_t *ret_limit)
{
    const char *text = ctl_option(ctl, "--limit");
    *ret_limit = usual;
    if (!text || (ctl_number(text, max, ret_limit) && *ret_limit > 0))
        return CTL_GOOD;
    return ctl_fail(CTL_USAGE, "--limit %s: it is a number from 1 to %llu", text, (unsigned long long)max);
}
