/* SPDX-License-Identifier: MIT */
/* notify: sd_notify(3) messages, for the life of the process. Never fails and never waits. */
#include "idem/adapter/notify.h"

#include <stdint.h>
#include <systemd/sd-daemon.h>
#include <time.h>

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
    static time_t fed;
    struct timespec now;
    uint64_t interval_us;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec == fed || sd_watchdog_enabled(0, &interval_us) <= 0)
        return;
    fed = now.tv_sec;
    sd_notify(0, "WATCHDOG=1");
}
