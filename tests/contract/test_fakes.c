/* SPDX-License-Identifier: MIT */
/* test_fakes: the ports' contract on the simulator's fakes: what the seeds rely on is what the servers do. */
#include "fake_world.h"

#include "../sim/world.h"

int main(void)
{
    static struct fake_store store;
    static struct fake_ledger ledgers[2];
    fake_world_init();
    fake_store_init(&store);
    fake_ledger_init(&ledgers[0]);
    fake_ledger_init(&ledgers[1]);
    struct port_world fakes = {&store.port, {&ledgers[0].port, &ledgers[1].port}, fake_world_hooks(), 0};
    return port_run("fakes", &fakes, NULL, 0) != 0;
}
