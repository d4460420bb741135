/* SPDX-License-Identifier: MIT */
/* http: see idem/adapter/http.h. The library's own thread polls; this file says who may connect, what is asked for, and
 * hands over whole answers. A client that sends its request byte by byte holds a place, never a thread: when places
 * get short, the oldest connection is cut. */
#include "idem/adapter/http.h"

#include "listen.h"
#include "token.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 64,        /* of the library: never reached, the oldest goes before */
    CONNECTIONS_WANTED = 48,
    SILENCE_S = 10,              /* a connection that sends and takes nothing for so long is closed */
    CONNECTION_BYTES = 16 << 10  /* request line and headers of one connection at most; more is 431 or 413 */
};

/* An open connection, in a ring by age. */
struct place {
    struct place *older, *newer;
    int fd;
    bool cut;
};

struct http {
    struct MHD_Daemon *daemon;
    const struct http_config *config;
    http_answer_fn *answer;
    void *context;
    struct place ring;           /* ring.newer = the oldest; all of this on the library's thread */
    uint32_t places;
    char address[HTTP_ADDRESS_MAX];
};

/* ---- connections ----------------------------------------------------------------------------------------------- */

/* Closing is the library's: it sees the end of input. */
static void cut_oldest(struct http *http)
{
    struct place *place = http->ring.newer;
    while (place != &http->ring && place->cut)
        place = place->newer;
    if (place == &http->ring)
        return;
    place->cut = true;
    shutdown(place->fd, SHUT_RDWR);
}

static void connection_begins(struct http *http, struct MHD_Connection *connection, void **slot)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct place *place = info ? malloc(sizeof *place) : NULL;
    *slot = place;
    if (!place)
        return;
    *place = (struct place){.older = http->ring.older, .newer = &http->ring, .fd = info->connect_fd};
    http->ring.older->newer = place;
    http->ring.older = place;
    if (++http->places > CONNECTIONS_WANTED)
        cut_oldest(http);
}

static void connection_ends(struct http *http, void **slot)
{
    struct place *place = *slot;
    if (!place)
        return;
    place->older->newer = place->newer;
    place->newer->older = place->older;
    http->places--;
    free(place);
    *slot = NULL;
}

static void connection_changes(void *self, struct MHD_Connection *connection, void **slot,
                               enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        connection_begins(self, connection, slot);
    else
        connection_ends(self, slot);
}

/* ---- requests -------------------------------------------------------------------------------------------------- */

static enum MHD_Result send_answer(struct MHD_Connection *connection, const struct http_answer *answer,
                                   const char *header, const char *value)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->len, answer->body, answer->body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!response) {
        free(answer->body);
        return MHD_NO;           /* out of memory: the connection is closed */
    }
    if (answer->type)
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (header)
        MHD_add_response_header(response, header, value);
    enum MHD_Result queued = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *header,
                              const char *value)
{
    struct http_answer answer = {.status = status};
    return send_answer(connection, &answer, header, value);
}

static bool has_body(struct MHD_Connection *connection)
{
    const char *length =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (length && strcmp(length, "0") != 0) ||
           MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_TRANSFER_ENCODING);
}

/* The library calls first when the headers are there, and again when the whole request is. What is refused is answered
 * at the first call, which also closes the connection: its body is never read. */
static enum MHD_Result handle(void *self, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **request)
{
    struct http *http = self;
    struct http_answer answer = {0};
    (void)version, (void)upload, (void)upload_size;
    if (!*request) {
        *request = http;
        if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
            return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
        return has_body(connection) ? refuse(connection, 413, NULL, NULL) : MHD_YES;
    }
    if (http->config->token_file.len > 0 &&
        !token_is_shown(http->config->token_file, MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
                                                                              MHD_HTTP_HEADER_AUTHORIZATION)))
        return refuse(connection, MHD_HTTP_UNAUTHORIZED, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    http->answer(http->context, bytes_text(url), &answer);
    return send_answer(connection, &answer, NULL, NULL);
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

struct http *http_start(const struct http_config *config, http_answer_fn *answer, void *context, struct err *err)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http) {
        err_set(err, ERR_FATAL, 0, "http", "out of memory");
        return NULL;
    }
    http->config = config;
    http->answer = answer;
    http->context = context;
    http->ring.older = http->ring.newer = &http->ring;
    if (config->token_file.len > 0 && token_check(config->token_file, err)) {
        free(http);
        return NULL;
    }
    int fd = listen_socket(config, http->address, err);
    if (fd < 0) {
        free(http);
        return NULL;
    }
    http->daemon = MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD, 0, NULL, NULL, handle, http, MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION,
        connection_changes, http, MHD_OPTION_END);
    if (!http->daemon) {
        err_set(err, ERR_FATAL, 0, "http", "the listener does not start");
        free(http);
        return NULL;
    }
    return http;
}

void http_stop(struct http *http)
{
    if (!http)
        return;
    MHD_stop_daemon(http->daemon);
    free(http);
}

const char *http_address(const struct http *http)
{
    return http->address;
}
