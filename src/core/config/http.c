/* SPDX-License-Identifier: MIT */
/* http: where the listener of health and metrics stands, and who may read it. Never asks a name server: what is not
 * surely this machine's own counts as the network. */
#include "binder.h"


#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

static const struct option http_options[] = {
    {.name = "listen", .kind = OPTION_TEXT, .offset = offsetof(struct http_config, listen),
     .fallback = "127.0.0.1:9464"},
    {.name = "ingress", .kind = OPTION_LATER, .accepted = {"false"}},
    {.name = "wait", .kind = OPTION_LATER, .accepted = {"800ms"}},
    {.name = "profile", .kind = OPTION_LATER, .accepted = {"seed"}},
    {.name = "token_file", .kind = OPTION_PATH, .offset = offsetof(struct http_config, token_file)},
};

/* Four numbers up to 255 with points between them; *ret_first is the first. */
static bool is_ipv4(struct bytes host, uint64_t *ret_first)
{
    size_t from = 0;
    for (int part = 0; part < 4; part++) {
        size_t to = from;
        uint64_t number;
        while (to < host.len && host.at[to] != '.')
            to++;
        if (!number_parse(bytes_of(host.at + from, to - from), &number) || number > 255)
            return false;
        if (part == 0)
            *ret_first = number;
        if ((to == host.len) != (part == 3))
            return false;
        from = to + 1;
    }
    return true;
}

static bool is_loopback(struct bytes host)
{
    uint64_t first;
    return (is_ipv4(host, &first) && first == 127) || bytes_equal(host, BYTES_LIT("::1")) ||
           bytes_equal_nocase(host, BYTES_LIT("localhost"));
}

static bool is_host_name(struct bytes host)
{
    for (size_t i = 0; i < host.len; i++) {
        uint8_t c = host.at[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-'))
            return false;
    }
    return host.len > 0 && host.len < 254;
}

/* What stands between brackets: hex digits, colons, points, and a zone after %. */
static bool is_ipv6(struct bytes host)
{
    size_t colons = 0;
    for (size_t i = 0; i < host.len; i++) {
        if (host.at[i] < '!' || host.at[i] > '~')
            return false;
        colons += host.at[i] == ':';
    }
    return colons >= 2 && host.len < 100;
}

/* HOST:PORT or [IPV6]:PORT. */
static bool split(struct bytes listen, struct http_config *ret)
{
    uint64_t port;
    size_t colon = listen.len;
    while (colon > 0 && listen.at[colon - 1] != ':')
        colon--;
    if (colon == 0 || !number_parse(bytes_of(listen.at + colon, listen.len - colon), &port) || port > 65535)
        return false;
    ret->port = (uint16_t)port;
    ret->host = bytes_of(listen.at, colon - 1);
    if (ret->host.len >= 2 && ret->host.at[0] == '[' && ret->host.at[ret->host.len - 1] == ']') {
        ret->host = bytes_of(ret->host.at + 1, ret->host.len - 2);
        return is_ipv6(ret->host);
    }
    return is_host_name(ret->host);
}

void http_bind(struct binder *b, const struct yaml_node *node)
{
    struct http_config *http = &b->config->http;
    size_t mark = path_enter(b, "http");
    *http = (struct http_config){0};
    section_bind(b, node, http_options, COUNT_OF(http_options), http);
    size_t inner = path_enter(b, "listen");
    const struct yaml_node *listen = node ? map_find(node, "listen") : NULL;
    http->asked = listen != NULL;
    if (http->listen.len > 0 && !split(http->listen, http)) {
        mistake(b, listen, "\"%s\" is no address like 127.0.0.1:9464 or [::1]:9464 (\"\": no listener)",
                quote(listen ? listen->text : http->listen).text);
    } else if (http->listen.len > 0) {
        http->loopback = is_loopback(http->host);
        if (!http->loopback && http->token_file.len == 0)
            mistake(b, listen, "a listener that is not loopback needs http.token_file");
    }
    path_leave(b, inner);
    path_leave(b, mark);
}
