/* SPDX-License-Identifier: MIT */
/* blame: counts what was committed and what was lost, for the worker; see blame.h. */
#include "blame.h"

enum {
    LOSSES_WITH_PROOF = 3,       /* while others were committed */
    LOSSES_WITHOUT = 6           /* while nobody else lost a connection, and perhaps nobody else had work */
};

static uint64_t read_count(const atomic_uint_fast64_t *count)
{
    return atomic_load_explicit(count, memory_order_relaxed);
}

static void add_one(atomic_uint_fast64_t *count)
{
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

static bool judged_by_row(enum outcome outcome)
{
    return outcome == OUTCOME_FIRST || outcome == OUTCOME_ALREADY_APPLIED || outcome == OUTCOME_APPLIED_BY_OTHER ||
           outcome == OUTCOME_STATE_CONFLICT || outcome == OUTCOME_NOT_FOUND;
}

void blame_committed(struct worker *worker, const struct segment *segment)
{
    const struct shared *shared = worker->init.shared;
    add_one(&shared->commits[worker->init.database]);
    for (uint32_t i = segment->from; i < segment->to; i++) {
        const struct item *item = worker->batch[i];
        if (!item->eval.rule || !judged_by_row(item->outcome))
            continue;
        add_one(&shared->rule_judged[item->eval.rule->index]);
        if (item->outcome == OUTCOME_FIRST)
            add_one(&shared->rule_commits[item->eval.rule->index]);
    }
}

bool blame_lost(struct worker *worker)
{
    const struct shared *shared = worker->init.shared;
    struct losses *losses = &worker->losses;
    add_one(&shared->losses[worker->init.database]);
    losses->ever++;
    uint64_t commits = read_count(&shared->commits[worker->init.database]);
    uint64_t foreign = read_count(&shared->losses[worker->init.database]) - losses->ever;
    if (losses->count++ == 0) {
        losses->commits = commits;
        losses->foreign = foreign;
    }
    if (losses->count >= LOSSES_WITH_PROOF && commits > losses->commits)
        return true;
    return losses->count >= LOSSES_WITHOUT && foreign == losses->foreign;
}

bool blame_failed(struct worker *worker, struct item *item)
{
    const struct shared *shared = worker->init.shared;
    const struct rule *rule = item->eval.rule;
    uint64_t firsts = rule ? read_count(&shared->rule_commits[rule->index]) : 0;
    uint64_t judged = rule ? read_count(&shared->rule_judged[rule->index]) : 0;
    bool may_be_first = item->outcome == OUTCOME_NONE || item->outcome == OUTCOME_FIRST;
    if (item->failures++ == 0) {
        item->failure_mark = firsts;
        item->failure_mark_judged = judged;
        return false;
    }
    return may_be_first ? firsts > item->failure_mark : judged > item->failure_mark_judged;
}
