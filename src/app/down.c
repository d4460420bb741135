/* SPDX-License-Identifier: MIT */
/* down: what cannot be applied now, told once, for the worker; see down.h. */
#include "down.h"

void worker_report(const struct worker *worker, enum report_event event, struct report_fields fields)
{
    fields.database = worker->init.config->databases[worker->init.database].name;
    worker->init.report->event(worker->init.report->self, event, &fields);
}

static void say(const struct worker *worker, enum report_event event, const struct topic *topic, const char *why,
                const struct err *err)
{
    struct report_fields fields = REPORT_FIELDS_INIT;
    fields.level = event == EVENT_PAUSED ? LEVEL_ERR : LEVEL_INFO;
    fields.why = why;
    fields.err = err;
    if (topic)
        fields.topic = topic->name;
    worker_report(worker, event, fields);
}

void down_for_good(const struct worker *worker, const char *why, const struct err *err)
{
    say(worker, EVENT_PAUSED, NULL, why, err);
}

static atomic_int *down_count(const struct worker *worker, int why)
{
    return &worker->init.shared->down[worker->init.database * DOWN_WHY_COUNT + (uint32_t)why];
}

static const char *down_name(int why)
{
    return why == DOWN_CONFIG ? "config" : "unreachable";
}

void down_set(struct worker *worker, int why, const struct err *err)
{
    if (worker->down == why)
        return;
    if (worker->down >= 0 && atomic_fetch_sub(down_count(worker, worker->down), 1) == 1)
        say(worker, EVENT_RESUMED, NULL, down_name(worker->down), NULL);
    worker->down = why;
    if (why >= 0 && atomic_fetch_add(down_count(worker, why), 1) == 0)
        say(worker, EVENT_PAUSED, NULL, down_name(why), err);
}

void down_topic(struct worker *worker, const struct topic *topic, const struct err *err)
{
    struct topic_hold *hold = &worker->holds[topic->index];
    if (hold->down)
        return;
    hold->down = true;
    if (atomic_fetch_add(&worker->init.shared->topic_down[topic->index], 1) == 0)
        say(worker, EVENT_PAUSED, topic, "config", err);
}

void up_topic(struct worker *worker, const struct topic *topic)
{
    struct topic_hold *hold = &worker->holds[topic->index];
    if (!hold->down)
        return;
    hold->down = false;
    hold->tries = 0;
    hold->due_us = 0;
    if (atomic_fetch_sub(&worker->init.shared->topic_down[topic->index], 1) == 1)
        say(worker, EVENT_RESUMED, topic, "config", NULL);
}
