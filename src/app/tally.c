/* SPDX-License-Identifier: MIT */
/* tally: see idem/app/tally.h. */
#include "idem/app/tally.h"

#include <stdlib.h>

enum { WORDS = OUTCOME_COUNT + CAUSE_COUNT, OLDEST = WORDS, PLACES };    /* of one topic */

static size_t place(uint32_t topic, uint32_t word)
{
    return (size_t)topic * PLACES + word;
}

/* The places of one topic that a list fills. */
static void range_of(enum ledger_list list, uint32_t *ret_from, uint32_t *ret_to)
{
    *ret_from = list == LEDGER_LETTERS ? 0 : OUTCOME_COUNT;
    *ret_to = list == LEDGER_LETTERS ? OUTCOME_COUNT : PLACES;
}

bool tally_init(struct tally *tally, const struct config *config, uint32_t database)
{
    *tally = (struct tally){.config = config, .database = database};
    size_t count = (size_t)config->topic_count * PLACES + 1;
    tally->counting = calloc(count, sizeof *tally->counting);
    tally->told = calloc(count, sizeof *tally->told);
    return tally->counting && tally->told;
}

void tally_finish(struct tally *tally)
{
    free(tally->counting);
    free(tally->told);
    *tally = (struct tally){0};
}

void tally_begin(struct tally *tally, enum ledger_list list)
{
    tally->list = list;
    memset(tally->counting, 0, (size_t)tally->config->topic_count * PLACES * sizeof *tally->counting);
}

static uint32_t word_of(enum ledger_list list, struct bytes word)
{
    enum outcome outcome;
    if (list == LEDGER_LETTERS)
        return outcome_parse(word, &outcome) ? (uint32_t)outcome : PLACES;
    for (int cause = CAUSE_NONE + 1; cause < CAUSE_COUNT; cause++)
        if (bytes_equal(word, bytes_text(cause_name((enum cause)cause))))
            return OUTCOME_COUNT + (uint32_t)cause;
    return PLACES;
}

void tally_add(void *context, const struct ledger_kind *kind)
{
    struct tally *tally = context;
    uint32_t word = word_of(tally->list, kind->word);
    for (uint32_t i = 0; i < tally->config->topic_count && word < PLACES; i++) {
        if (tally->config->topics[i].database != tally->database ||
            !bytes_equal(tally->config->topics[i].name, kind->topic))
            continue;
        tally->counting[place(i, word)] += kind->count;
        if (kind->oldest_s > tally->counting[place(i, OLDEST)])
            tally->counting[place(i, OLDEST)] = kind->oldest_s;
    }
}

void tally_publish(struct tally *tally)
{
    uint32_t from, to;
    range_of(tally->list, &from, &to);
    for (uint32_t i = 0; i < tally->config->topic_count; i++)
        for (uint32_t word = from; word < to; word++)
            atomic_store(&tally->told[place(i, word)], tally->counting[place(i, word)]);
}

uint64_t tally_letters(const struct tally *tally, uint32_t topic, enum outcome outcome)
{
    return atomic_load(&tally->told[place(topic, outcome)]);
}

uint64_t tally_parked(const struct tally *tally, uint32_t topic, enum cause reason)
{
    return atomic_load(&tally->told[place(topic, OUTCOME_COUNT + (uint32_t)reason)]);
}

uint64_t tally_parked_oldest_s(const struct tally *tally, uint32_t topic)
{
    return atomic_load(&tally->told[place(topic, OLDEST)]);
}
