/* SPDX-License-Identifier: MIT */
/* proof: see proof.h. A record that retention or compaction took is no objection: only another one in its place is. */
#include "proof.h"

#include "idem/base/sha256.h"

int64_t proof_begin(struct partition *partition, const struct ledger_partition *owned, int64_t start)
{
    if (start < 0 || owned->last_offset < 0)
        return start;
    partition->proof = (struct proof){.pending = true, .offset = owned->last_offset, .start = start};
    memcpy(partition->proof.hash, owned->last_hash, OFFSET_HASH_LEN);
    return owned->last_offset;
}

static struct source_partition place(const struct partition *partition, int64_t offset)
{
    return (struct source_partition){partition->topic->name, partition->number, offset};
}

static void stop(struct intake *intake, struct partition *partition)
{
    struct err err;
    struct report_fields fields = REPORT_FIELDS_INIT;
    struct source_partition stopped = place(partition, SOURCE_OFFSET_NONE);
    fields.level = LEVEL_ERR;
    fields.topic = partition->topic->name;
    fields.partition = partition->number;
    fields.offset = partition->proof.offset;
    intake->init.report->event(intake->init.report->self, EVENT_RECREATED, &fields);
    partition_end(partition, PARTITION_STOPPED);
    partition->halt = HALT_RECREATED;
    /* If it cannot be paused now, its records are dropped as they come. */
    intake->init.source->ops->pause(intake->init.source->self, &stopped, 1, true, &err);
}

static void start_at(struct intake *intake, struct partition *partition, int64_t offset)
{
    struct err err;
    struct source_partition started = place(partition, offset);
    partition->proof.restart =
        intake->init.source->ops->start(intake->init.source->self, &started, 1, &err) != ERR_NONE;
}

bool proof_takes(struct intake *intake, struct partition *partition, const struct record *record)
{
    struct proof *proof = &partition->proof;
    uint8_t digest[SHA256_LEN];
    if (record->offset < proof->offset)
        return true;
    if (record->offset == proof->offset) {
        sha256(record->value, digest);
        if (memcmp(digest, proof->hash, OFFSET_HASH_LEN) != 0) {
            stop(intake, partition);
            return true;
        }
    }
    proof->pending = false;
    if (proof->start <= proof->offset) {             /* Kafka's offset was behind: from there on */
        start_at(intake, partition, proof->start);
        return true;
    }
    return record->offset < proof->start;
}

bool proof_is_gone(struct partition *partition)
{
    if (!partition->proof.pending)
        return false;
    partition->proof.pending = false;
    partition->proof.restart = true;
    return true;
}

void proof_round(struct intake *intake)
{
    for (uint32_t i = 0; i < intake->partitions.count; i++) {
        struct partition *partition = &intake->partitions.slots[i];
        if (partition->proof.restart && partition->state == PARTITION_RUNNING)
            start_at(intake, partition, partition->proof.start);
    }
}
