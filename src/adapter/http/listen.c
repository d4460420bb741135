/* SPDX-License-Identifier: MIT */
/* listen: the socket of the listener, bound before the library sees it, so that a mistake has its reason and port 0
 * its number. */
#include "listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 24 == 127;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static int bound_socket(const struct addrinfo *info)
{
    int on = 1;
    int fd = socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, info->ai_protocol);
    if (fd < 0)
        return -1;
    /* A port that the last run left in TIME_WAIT is free; one that another process listens on is not. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (info->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, 64) == 0)
        return fd;
    int number = errno;
    close(fd);
    errno = number;
    return -1;
}

static void name_bound(int fd, char ret_address[HTTP_ADDRESS_MAX])
{
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof bound;
    char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
    getsockname(fd, (struct sockaddr *)(void *)&bound, &len);
    getnameinfo((struct sockaddr *)(void *)&bound, len, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(ret_address, HTTP_ADDRESS_MAX, bound.ss_family == AF_INET6 ? "[%.200s]:%s" : "%.200s:%s", host, port);
}

int listen_socket(const struct http_config *config, char ret_address[HTTP_ADDRESS_MAX], struct err *err)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list = NULL;
    char host[256] = "", port[8], listen[280] = "";
    snprintf(host, sizeof host, "%.*s", (int)config->host.len, (const char *)config->host.at);
    snprintf(port, sizeof port, "%u", config->port);
    snprintf(listen, sizeof listen, "%.*s", (int)config->listen.len, (const char *)config->listen.at);
    int failed = getaddrinfo(host, port, &hints, &list);
    if (failed) {
        err_set(err, ERR_CONFIG, 0, "http", "http.listen %s: %s", listen, gai_strerror(failed));
        return -1;
    }
    /* A name that the file takes for loopback must be that. */
    if (config->token_file.len == 0 && !is_loopback(list->ai_addr)) {
        freeaddrinfo(list);
        err_set(err, ERR_CONFIG, 0, "http", "http.listen %s is not loopback and needs http.token_file", listen);
        return -1;
    }
    int fd = bound_socket(list);
    freeaddrinfo(list);
    if (fd < 0)
        err_set(err, ERR_CONFIG, errno, "http", "http.listen %s: %m%s", listen,
                errno == EADDRINUSE ? " (another idemd? each needs a port of its own; \"\" turns it off)" : "");
    else
        name_bound(fd, ret_address);
    return fd;
}
