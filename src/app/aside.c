/* SPDX-License-Identifier: MIT */
/* aside: keeps the order of each number among records that wait, for the worker. Never looks at the clock. */
#include "aside.h"

bool aside_has(const struct item_list *aside, uint64_t number_hash)
{
    for (const struct item *item = aside->head; item; item = item->next)
        if (item->number_hash == number_hash)
            return true;
    return false;
}

int64_t aside_due(const struct item_list *aside)
{
    int64_t due = INT64_MAX;
    for (const struct item *item = aside->head; item; item = item->next)
        if (item->not_before_us < due)
            due = item->not_before_us;
    return due;
}

uint32_t aside_take(struct item_list *aside, int64_t now_us, struct item **ret_items, uint32_t max)
{
    struct item_list kept = {0};
    uint64_t number = 0;
    uint32_t count = 0;
    for (struct item *item; (item = item_list_pop(aside));) {
        if (count == 0 && item->not_before_us <= now_us)
            number = item->number_hash;
        bool mine = item->number_hash == number && (count > 0 || item->not_before_us <= now_us);
        if (mine && count < max) {
            ret_items[count++] = item;
            continue;
        }
        if (mine)        /* more of them than a batch holds: the first left over leads the next */
            item->not_before_us = now_us;
        item_list_push(&kept, item);
    }
    *aside = kept;
    return count;
}

void aside_put_first(struct item_list *aside, struct item_list *front)
{
    /* Those of its number that were left here came after it: they wait for it again. */
    for (struct item *left = aside->head; left; left = left->next)
        if (left->number_hash == front->head->number_hash)
            left->not_before_us = INT64_MAX;
    item_list_join(front, aside);
    *aside = *front;
    *front = (struct item_list){0};
}

void aside_note_locked(struct item *item, int64_t now_us)
{
    if (item->locked_since_us == 0)
        item->locked_since_us = now_us;
}

int64_t aside_parks_from(const struct item *item)
{
    const struct rule *rule = item->eval.rule;
    if (!rule || rule->park.for_ms == 0 || item->locked_since_us == 0)
        return INT64_MAX;
    return item->locked_since_us + (int64_t)rule->park.locked_after_ms * 1000;
}

void aside_delay(struct item *item, int64_t now_us, uint32_t delay_ms)
{
    int64_t parks = aside_parks_from(item);
    item->not_before_us = now_us + (int64_t)delay_ms * 1000;
    if (parks > now_us && parks < item->not_before_us)
        item->not_before_us = parks;
}
