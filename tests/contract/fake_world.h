/* SPDX-License-Identifier: MIT */
/* fake_world: the hooks of port_cases.h over the database of the simulator (tests/sim/world.h). One a program. */
#ifndef IDEM_TESTS_FAKE_WORLD_H
#define IDEM_TESTS_FAKE_WORLD_H

#include "port_cases.h"

/* A world without faults of its own: what a case does not order does not happen. */
void fake_world_init(void);
const struct port_hooks *fake_world_hooks(void);

#endif
