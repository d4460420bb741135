/* SPDX-License-Identifier: MIT */
/* cut_proxy: see cut_proxy.h. A thread a connection; reads only as much of the protocol
 * as a packet that ends in COMMIT. */
#include "cut_proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HELD_MAX = 16, CHUNK = 1 << 16 };
enum { CUT_NEVER, CUT_FORWARDED, CUT_SWALLOWED };

static int listener = -1;
static struct sockaddr_in target;
static atomic_int cut;
static atomic_bool refusing;
static atomic_int held[HELD_MAX];
static atomic_uint held_count;

static bool send_all(int to, const char *bytes, ssize_t len)
{
    while (len > 0) {
        ssize_t sent = send(to, bytes, (size_t)len, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        len -= sent;
    }
    return true;
}

/* true: the connection goes on. */
static bool client_sent(int client, int server, const char *bytes, ssize_t len)
{
    int now = atomic_load(&cut);
    /* libmysqlclient puts query attributes between the command byte and the text. */
    bool commit = len >= 6 && len < 32 && memcmp(bytes + len - 6, "COMMIT", 6) == 0;
    if (now == CUT_NEVER || !commit)
        return send_all(server, bytes, len);
    atomic_store(&cut, CUT_NEVER);
    if (now == CUT_FORWARDED)
        send_all(server, bytes, len);
    shutdown(client, SHUT_RDWR);
    unsigned at = atomic_fetch_add(&held_count, 1);
    if (at < HELD_MAX)
        atomic_store(&held[at], server);
    return false;
}

static void *carry(void *context)
{
    int client = (int)(intptr_t)context, server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    static _Thread_local char bytes[CHUNK];
    bool on = connect(server, (struct sockaddr *)&target, sizeof target) == 0, keep = false;
    while (on) {
        struct pollfd fds[] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0)
            break;
        for (int i = 0; i < 2 && on; i++) {
            if (!(fds[i].revents & (POLLIN | POLLHUP | POLLERR)))
                continue;
            ssize_t len = recv(fds[i].fd, bytes, sizeof bytes, 0);
            bool armed = atomic_load(&cut) != CUT_NEVER;
            on = len > 0 && (i == 0 ? client_sent(client, server, bytes, len)
                                    : send_all(client, bytes, len));
            keep = !on && armed && atomic_load(&cut) == CUT_NEVER;
        }
    }
    close(client);
    if (!keep)
        close(server);
    return NULL;
}

static void *listen_on(void *context)
{
    (void)context;
    for (int client; (client = accept(listener, NULL, NULL)) >= 0;) {
        pthread_t thread;
        if (atomic_load(&refusing)) {
            close(client);
            continue;
        }
        if (pthread_create(&thread, NULL, carry, (void *)(intptr_t)client))
            abort();
        pthread_detach(thread);
    }
    return NULL;
}

uint16_t cut_proxy_start(const char *host, uint16_t port)
{
    struct sockaddr_in mine = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof mine;
    pthread_t thread;
    target = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, host, &target.sin_addr) != 1 ||
        bind(listener, (struct sockaddr *)&mine, sizeof mine) || listen(listener, 16) ||
        getsockname(listener, (struct sockaddr *)&mine, &len) ||
        pthread_create(&thread, NULL, listen_on, NULL))
        abort();
    pthread_detach(thread);
    return ntohs(mine.sin_port);
}

void cut_proxy_arm(bool forwarded)
{
    atomic_store(&cut, forwarded ? CUT_FORWARDED : CUT_SWALLOWED);
}

void cut_proxy_disarm(void)
{
    atomic_store(&cut, CUT_NEVER);
}

void cut_proxy_refuse(bool refused)
{
    atomic_store(&refusing, refused);
}

void cut_proxy_stop(void)
{
    shutdown(listener, SHUT_RDWR);
    unsigned count = atomic_exchange(&held_count, 0);
    for (unsigned i = 0; i < count && i < HELD_MAX; i++)
        close(atomic_load(&held[i]));
}
