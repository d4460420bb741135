/* SPDX-License-Identifier: MIT */
/* parking: see idem/core/parking.h. Never reads a clock: it says how long, the database says from when. */
#include "idem/core/parking.h"

static bool is_counted(enum cause reason)
{
    return reason == CAUSE_NOT_FOUND || reason == CAUSE_STATE;
}

/* Doubles from the first wait, capped. Without jitter: next_attempt_at is for people to read. */
static uint64_t backoff(const struct park_config *park, uint32_t attempts)
{
    uint64_t delay = park->backoff_base_ms;
    for (uint32_t i = 0; i < attempts && delay < park->backoff_cap_ms; i++)
        delay *= 2;
    return delay < park->backoff_cap_ms ? delay : park->backoff_cap_ms;
}

struct park_step park_first(const struct park_config *park, enum cause reason)
{
    struct park_step step = {.reason = reason, .delay_ms = PARK_UNTIL_WOKEN, .clock = PARK_CLOCK_STOPPED};
    if (reason == CAUSE_BEHIND)
        return step;
    step.delay_ms = backoff(park, 0);
    if (is_counted(reason)) {
        step.clock = PARK_CLOCK_STARTED;
        step.for_ms = park->for_ms;
    }
    return step;
}

struct park_step park_again(const struct park_config *park, const struct parked_row *row, enum cause reason)
{
    struct park_step step = {.reason = reason, .attempts = row->attempts, .clock = PARK_CLOCK_KEPT};
    if (reason == CAUSE_BEHIND)
        return park_still(row);
    if (!is_counted(reason)) {
        step.delay_ms = backoff(park, 0);
        if (row->clock_runs)
            step.clock = PARK_CLOCK_SHIFTED;
        return step;
    }
    step.attempts++;
    step.delay_ms = backoff(park, step.attempts);
    step.until_give_up = step.attempts + 1 >= park->attempts;
    if (row->clock_runs) {
        step.give_up = row->over && step.attempts >= park->attempts;
    } else {
        step.clock = PARK_CLOCK_STARTED;
        step.for_ms = park->for_ms;
    }
    return step;
}

struct park_step park_still(const struct parked_row *row)
{
    return (struct park_step){.reason = row->reason, .attempts = row->attempts, .delay_ms = PARK_UNTIL_WOKEN,
                              .clock = PARK_CLOCK_KEPT};
}

enum outcome park_given_up(enum cause reason, enum cause *ret_cause)
{
    if (reason == CAUSE_NOT_FOUND) {
        *ret_cause = CAUSE_GIVEN_UP;
        return OUTCOME_NOT_FOUND;
    }
    *ret_cause = reason == CAUSE_STATE ? CAUSE_EARLY : CAUSE_GIVEN_UP;
    return OUTCOME_STATE_CONFLICT;
}

void parked_row_bind(struct item *item, const struct parked_row *row, struct arena *arena)
{
    const struct evaluation *eval = &item->eval;
    item->parked = *row;
    item->parked.rule = arena_copy(arena, row->rule);
    item->parked.biz_type = arena_copy(arena, row->biz_type);
    item->parked.key = arena_copy(arena, row->key);
    item->parked.biz_no = arena_copy(arena, row->biz_no);
    item->parked.orphaned = eval->outcome != OUTCOME_NONE || !bytes_equal(eval->key, row->key) ||
                            !bytes_equal(eval->biz_no, row->biz_no) ||
                            !bytes_equal(eval->rule->biz_type, row->biz_type);
    if (row->letter_id) {
        item->record.source = SOURCE_REDRIVE;
        item->record.partition = -1;
        item->record.offset = (int64_t)row->id;
    }
}
