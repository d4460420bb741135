/* SPDX-License-Identifier: MIT */
/* notify: sd_notify(3) messages, for the life of the process. Never fails and never waits. */
#include "idem/adapter/notify.h"

#include "idem/adapter/clock.h"

#include <systemd/sd-daemon.h>

void notify_ready(void)
{
    sd_notify(0, "READY=1");
}

void notify_stopping(void)
{
    sd_notify(0, "STOPPING=1\nSTATUS=draining");
}

void notify_status(const char *text)
{
    sd_notifyf(0, "STATUS=%s", text);
}

void notify_watchdog(void)
{
    static int64_t fed_s;
    uint64_t interval_us;
    int64_t now_s = clock_mono_us() / 1000000;
    if (now_s == fed_s || sd_watchdog_enabled(0, &interval_us) <= 0)
        return;
    fed_s = now_s;
    sd_notify(0, "WATCHDOG=1");
}
