/* SPDX-License-Identifier: MIT */
/* customers: what the simulated shop's channels send: payments, refunds, repeats, and what goes wrong with them. Only
 * appends to the logs; which order and which mistake, the seed says. */
#include "world.h"

#include <stdio.h>

static void send(int partition, const char *key, const char *format, const char *number, const char *txn)
{
    struct log *log = &world.logs[partition];
    struct sent *sent = &log->records[log->count];
    *sent = (struct sent){.offset = log->count ? sent[-1].offset + 1 + (world_chance(8) ? 2 : 0) : 0,
        .has_value = true};
    log->count++;
    snprintf(sent->key_header, TEXT, "%s", key);
    snprintf(sent->body, sizeof sent->body, format, number, txn);
    snprintf(sent->number, TEXT, "%s", number);
}

static const char pay[] = "{\"kind\":\"PAY\",\"no\":\"%s\",\"txn\":\"%s\",\"amount\":\"19.99\"}";

void customers_send_paying(int partition, int order)
{
    char number[TEXT], txn[TEXT];
    snprintf(number, sizeof number, "O%d", order);
    snprintf(txn, sizeof txn, "T%d", order);
    send(partition, "", pay, number, txn);
}

void customers_send(void)
{
    static const char wrong[] = "{\"kind\":\"PAY\",\"no\":\"%s\",\"txn\":\"%s\",\"amount\":\"1.00\"}";
    static const char poison[] =
        "{\"kind\":\"PAY\",\"no\":\"%s\",\"txn\":\"%s\",\"amount\":\"19.99\",\"x\":\"POISON\"}";
    static const char refund[] = "{\"kind\":\"REFUND\",\"no\":\"%s\",\"refund_no\":\"%s\"}";
    char number[TEXT], txn[TEXT];
    int order = world_chance(4) ? 0 : (int)(world_random() % (ORDERS - RESERVED));       /* one hot order */
    int partition = world_chance(5) ? (int)(world_random() % PARTITIONS) : order % PARTITIONS;
    snprintf(number, sizeof number, "O%d", order);
    snprintf(txn, sizeof txn, "T%d", order);
    uint32_t kind = (uint32_t)world_random() % 16;
    if (world.refunds && (kind == 10 || kind == 11))
        kind = 6;
    switch (kind) {
    case 0: send(partition, "", pay, number, "ANOTHER"); break;
    case 1: send(partition, "", wrong, number, txn); break;
    case 2: send(partition, "supplied-key", pay, number, txn); break;
    case 3: send(partition, "", pay, "NOBODY", txn); break;
    case 4: send(partition, "", "{broken%.0s%.0s", number, txn); break;
    case 5: send(partition, "", pay, number, "a-transaction-number-that-is-too-long"); break;
    case 6:
        snprintf(txn, sizeof txn, "R%d-%d", order, (int)(world_random() % (world.refunds ? 12 : 5)));
        send(partition, "", refund, number, txn);
        break;
    case 7: send(partition, "", pay, number, "T0"); break;                    /* one transaction for two orders */
    case 8:
        send(partition, "", pay, number, txn);
        world.logs[partition].records[world.logs[partition].count - 1].has_value = false;
        break;
    case 9:
        if (world_chance(4))
            send(partition, "", poison, number, txn);
        break;
    default: send(partition, "", pay, number, txn);
    }
}
