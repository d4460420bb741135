/* SPDX-License-Identifier: MIT */
/* conn: see conn.h. For the store, the ledger and the schema tools; never retries, never logs,
 * never decides what an error means for a record. A statement outside a transaction (tools, session
 * reads) opens one on the server because autocommit is off; conn_begin ends such a leftover before
 * it starts. */
#include "conn_self.h"

#include "idem/adapter/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>

enum {
    CONNECT_TIMEOUT_S = 5,
    SILENCE_S = 30,              /* far over what lies between two statements of a transaction */
    TOOL_TIMEOUT_S = 86400,      /* migrations rebuild tables */
    HOST_MAX = 256,
    SECRET_MAX = 1024
};

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void library_start(void)
{
    if (mysql_library_init(0, NULL, NULL))
        abort();
}

struct conn *conn_create(const struct database_config *config)
{
    pthread_once(&library_once, library_start);
    struct conn *conn = calloc(1, sizeof *conn);
    if (conn)
        *conn = (struct conn){.config = config, .options.silence_s = SILENCE_S};
    return conn;
}

void conn_destroy(struct conn *conn)
{
    if (!conn)
        return;
    conn_close(conn);
    free(conn);
}

void conn_trace_set(struct conn *conn, conn_trace *trace, void *context)
{
    conn->trace = trace;
    conn->trace_context = context;
}

void conn_options_set(struct conn *conn, const struct conn_options *options)
{
    conn->options = *options;
    conn->options.silence_s += conn->options.silence_s ? 0 : SILENCE_S;
}

void conn_done(struct conn *conn)
{
    if (conn->result)
        mysql_free_result(conn->result);
    conn->result = NULL;
}

void conn_close(struct conn *conn)
{
    conn_done(conn);
    if (conn->db)
        mysql_close(conn->db);
    conn->db = NULL;
    conn->state = CONN_CLOSED;
    conn->leftover = false;
}

/* Idle for so long that the server may have ended it: another one is opened before it is missed. */
static bool is_stale(const struct conn *conn)
{
    return conn->state == CONN_IDLE && !conn->options.user &&
           clock_mono_us() - conn->spoke_us > (int64_t)conn->options.silence_s * 600000;
}

enum conn_state conn_state(const struct conn *conn)
{
    return is_stale(conn) ? CONN_BROKEN : conn->state;
}

static void next_host(struct conn *conn)
{
    if (conn->config->host_count > 1)
        conn->host = (conn->host + 1) % conn->config->host_count;
}

void conn_leave(struct conn *conn)
{
    conn->state = CONN_BROKEN;
    next_host(conn);
}

static uint32_t lock_wait_s(const struct conn *conn)
{
    if (conn->options.lock_wait_s)
        return conn->options.lock_wait_s;
    uint32_t seconds = (conn->config->lock_wait_ms + 999) / 1000;
    return seconds ? seconds : 1;
}

/* ---- connecting ------------------------------------------------------------------------------------------------ */

/* Copies a view into a NUL-terminated place; false if it does not fit. */
static bool text_of(struct bytes bytes, char *ret, size_t size)
{
    if (bytes.len >= size)
        return false;
    if (bytes.len)
        memcpy(ret, bytes.at, bytes.len);
    ret[bytes.len] = '\0';
    return true;
}

static enum err_class read_password(const struct conn *conn, char ret[SECRET_MAX], struct err *err)
{
    char path[4096];
    if (conn->options.user && conn->options.password)
        return text_of(bytes_text(conn->options.password), ret, SECRET_MAX)
                   ? ERR_NONE
                   : err_set(err, ERR_CONFIG, 0, "connect", "the password is too long");
    if (!conn->config->password_file.len)
        return text_of(conn->config->password, ret, SECRET_MAX)
                   ? ERR_NONE
                   : err_set(err, ERR_CONFIG, 0, "connect", "the password is too long");
    if (!text_of(conn->config->password_file, path, sizeof path))
        return err_set(err, ERR_CONFIG, 0, "connect", "password_file: the path is too long");
    FILE *file = fopen(path, "re");
    if (!file)
        return err_set(err, ERR_CONFIG, 0, "connect", "password_file %s cannot be opened: %m", path);
    setvbuf(file, NULL, _IONBF, 0);          /* no second copy of the secret */
    size_t len = fread(ret, 1, SECRET_MAX, file);
    fclose(file);
    if (len == SECRET_MAX)
        return err_set(err, ERR_CONFIG, 0, "connect", "password_file %s is too long", path);
    if (len && ret[len - 1] == '\n')
        len--;
    ret[len] = '\0';
    return ERR_NONE;
}

static void set_path(MYSQL *db, enum mysql_option option, struct bytes path)
{
    char text[4096];
    if (path.len && text_of(path, text, sizeof text))
        mysql_options(db, option, text);
}

static void set_options(struct conn *conn)
{
    const struct database_config *config = conn->config;
    unsigned connect_s = CONNECT_TIMEOUT_S;
    /* A statement may wait for more than one lock; COMMIT may wait for a semi-synchronous replica. */
    unsigned io_s = conn->options.user ? TOOL_TIMEOUT_S : 2 * lock_wait_s(conn) + 30;
    unsigned local_infile = 0;
    unsigned protocol = config->socket.len ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
    struct bytes ca = config->tls_ca;
    if (config->tls == TLS_VERIFY && !ca.len)
        ca = BYTES_LIT("/etc/ssl/certs/ca-certificates.crt");
    mysql_options(conn->db, MYSQL_OPT_CONNECT_TIMEOUT, &connect_s);
    mysql_options(conn->db, MYSQL_OPT_READ_TIMEOUT, &io_s);
    mysql_options(conn->db, MYSQL_OPT_WRITE_TIMEOUT, &io_s);
    mysql_options(conn->db, MYSQL_OPT_PROTOCOL, &protocol);
    mysql_options(conn->db, MYSQL_OPT_LOCAL_INFILE, &local_infile);
    mysql_options(conn->db, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_options4(conn->db, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "idemd");
    if (config->tls != TLS_OFF) {
        set_path(conn->db, MYSQL_OPT_SSL_CA, ca);
        set_path(conn->db, MYSQL_OPT_SSL_CERT, config->tls_cert);
        set_path(conn->db, MYSQL_OPT_SSL_KEY, config->tls_key);
    }
    compat_tls(conn->db, config->tls);
    if (config->tls == TLS_OFF)
        compat_server_key(conn->db);
}

/* While connecting every refusal of the server that is not passing is somebody's configuration. */
static enum err_class connect_class(unsigned number)
{
    enum err_class class = mysql_class(number, false);
    return class == ERR_UNKNOWN || class == ERR_DATA || class == ERR_SCHEMA ? ERR_CONFIG : class;
}

static enum err_class connect_host(struct conn *conn, struct err *err)
{
    const struct database_config *config = conn->config;
    char host[HOST_MAX] = "", user[HOST_MAX], database[HOST_MAX], socket[256], secret[SECRET_MAX];
    struct bytes user_text = conn->options.user ? bytes_text(conn->options.user) : config->user;
    if ((!config->socket.len && config->host_count &&
         !text_of(config->hosts[conn->host], host, sizeof host)) ||
        !text_of(user_text, user, sizeof user) ||
        !text_of(config->database, database, sizeof database) ||
        !text_of(config->socket, socket, sizeof socket))
        return err_set(err, ERR_CONFIG, 0, "connect", "host, user, database or socket is too long");
    enum err_class class = read_password(conn, secret, err);
    if (class)
        return class;
    conn->db = mysql_init(NULL);
    if (!conn->db)
        return err_set(err, ERR_RECONNECT, 0, "connect", "out of memory");
    set_options(conn);
    /* No flags: CLIENT_FOUND_ROWS would make affected rows prove nothing (hazards M1). */
    if (!mysql_real_connect(conn->db, host[0] ? host : NULL, user, secret, database, config->port,
                            socket[0] ? socket : NULL, 0)) {
        unsigned number = mysql_errno(conn->db);
        class = err_set(err, connect_class(number), (int)number, "connect", "%s",
                        mysql_error(conn->db));
        conn_close(conn);
    }
    explicit_bzero(secret, sizeof secret);
    return class;
}

/* ---- the session ----------------------------------------------------------------------------------------------- */

static const char *const session_sql_mode =
    "STRICT_ALL_TABLES,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION";

static enum err_class set_session(struct conn *conn, struct err *err)
{
    char text[1024];
    struct buf sql;
    enum err_class class = conn_run_text(conn, "SET NAMES utf8mb4 COLLATE utf8mb4_bin", "session", err);
    if (class)
        return class;
    class = conn_run_text(conn, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "session", err);
    if (class)
        return class;
    buf_init(&sql, text, sizeof text);
    buf_text(&sql, "SET SESSION autocommit=0,sql_safe_updates=0,unique_checks=1,foreign_key_checks=1,"
                   "innodb_lock_wait_timeout=");
    buf_uint(&sql, lock_wait_s(conn));
    /* Metadata locks wait a day or a year by default; a tool may have to wait for one. */
    if (!conn->options.user) {
        buf_text(&sql, ",lock_wait_timeout=");
        buf_uint(&sql, 2 * lock_wait_s(conn));
        buf_text(&sql, ",wait_timeout=");    /* who is frozen in a transaction gives its locks back */
        buf_uint(&sql, conn->options.silence_s);
    }
    buf_text(&sql, ",sql_mode=");
    sql_string(&sql, bytes_text(session_sql_mode));
    if (conn->config->time_zone.len) {
        buf_text(&sql, ",time_zone=");
        sql_string(&sql, conn->config->time_zone);
    }
    if (sql.overflow)
        return err_set(err, ERR_CONFIG, 0, "session", "time_zone is too long");
    class = conn_run(conn, buf_view(&sql), "session", err);
    /* 1298: unknown time zone, 1231: a value that this server does not take. */
    return class == ERR_UNKNOWN ? err_set(err, ERR_CONFIG, err ? err->number : 0, "session", "%s",
                                          mysql_error(conn->db))
                                : class;
}

static bool text_is(struct bytes text, const char *wanted)
{
    return bytes_equal_nocase(text, bytes_text(wanted));
}

static bool is_off(struct bytes text)
{
    return text_is(text, "OFF") || text_is(text, "0");
}

static bool list_has(struct bytes list, const char *word)
{
    return memmem(list.at, list.len, word, strlen(word)) != NULL;
}

static uint64_t number_of(struct bytes text)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.len && text.at[i] >= '0' && text.at[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(text.at[i] - '0');
    return number;
}

/* One fact of the session; NULL, or what is wrong with it. */
static const char *check_variable(struct conn *conn, struct bytes name, struct bytes value)
{
    if (text_is(name, "autocommit"))
        return is_off(value) ? NULL : "autocommit is on";
    if (text_is(name, "tx_isolation") || text_is(name, "transaction_isolation"))
        return text_is(value, "READ-COMMITTED") ? NULL : "the isolation level is not READ COMMITTED";
    if (text_is(name, "sql_mode"))
        return list_has(value, "STRICT_ALL_TABLES") && !list_has(value, "NO_BACKSLASH_ESCAPES") &&
                       !list_has(value, "ANSI_QUOTES")
                   ? NULL
                   : "sql_mode is not the one that was set";
    if (text_is(name, "character_set_client") || text_is(name, "character_set_results"))
        return text_is(value, "utf8mb4") ? NULL : "the character set is not utf8mb4";
    if (text_is(name, "time_zone") && conn->config->time_zone.len)
        return bytes_equal_nocase(value, conn->config->time_zone) ? NULL : "time_zone was not taken";
    if (text_is(name, "read_only") || text_is(name, "super_read_only") ||
        text_is(name, "innodb_read_only"))
        conn->writable = conn->writable && is_off(value);
    else if (text_is(name, "max_allowed_packet"))
        conn->packet_max = number_of(value);
    else if (text_is(name, "server_uuid") || text_is(name, "server_uid") || text_is(name, "server_id") ||
             text_is(name, "hostname") || text_is(name, "port"))
        conn->server += bytes_hash(value, bytes_hash(name, 0));      /* in no order */
    return NULL;
}

static enum err_class verify_session(struct conn *conn, struct err *err)
{
    const struct conn_cell *cells;
    const char *wrong = NULL;
    uint32_t count;
    conn->writable = true;
    conn->server = 0;
    conn->packet_max = 0;
    enum err_class class = conn_run_text(
        conn,
        "SHOW SESSION VARIABLES WHERE Variable_name IN ('autocommit','tx_isolation',"
        "'transaction_isolation','sql_mode','time_zone','character_set_client','character_set_results',"
        "'read_only','super_read_only','innodb_read_only','max_allowed_packet','server_uuid',"
        "'server_uid','server_id','hostname','port')",
        "session", err);
    if (class)
        return class;
    while (conn_next(conn, &cells, &count))
        if (!wrong && count >= 2 && !cells[1].is_null)
            wrong = check_variable(conn, cells[0].text, cells[1].text);
    conn_done(conn);
    if (wrong)
        return err_set(err, ERR_CONFIG, 0, "session", "%s", wrong);
    if (conn->packet_max == 0 || (conn->db->client_flag & CLIENT_FOUND_ROWS))
        return err_set(err, ERR_CONFIG, 0, "session", "the session is not as it was asked for");
    if (conn->config->tls != TLS_OFF && !mysql_get_ssl_cipher(conn->db))
        return err_set(err, ERR_CONFIG, 0, "session", "the connection is not encrypted");
    if (!conn->writable && !conn->options.read_only_allowed)
        return err_set(err, ERR_WRONG_SERVER, 1290, "session", "the server is read-only");
    return ERR_NONE;
}

/* Thread id by SQL: between us and the server may stand a proxy that numbers its own (details 4, "In doubt").
 * Beside it when the server started: both clocks are read once for the statement, so the difference is exact. What was
 * started again may have come back from an older copy of its files. */
static enum err_class read_thread_and_start(struct conn *conn, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t count;
    static const char start[] = "SELECT CONNECTION_ID(),UNIX_TIMESTAMP()-VARIABLE_VALUE FROM ";
    char sql[sizeof start + 64];
    snprintf(sql, sizeof sql, "%s%s WHERE VARIABLE_NAME='Uptime'", start,
             conn->mariadb ? "information_schema.GLOBAL_STATUS" : "performance_schema.global_status");
    enum err_class class = conn_run_text(conn, sql, "session", err);
    if (!class && conn_next(conn, &cells, &count)) {
        conn->thread_id = number_of(cells[0].text);
        conn->server += bytes_hash(cells[1].text, 0);
    }
    conn->server |= conn->server == 0;
    conn_done(conn);
    return class;
}

/* MariaDB 10 says 5.5.5- before its version, which libmysqlclient takes for the version. */
static uint32_t version_of(const char *info)
{
    uint32_t version = 0;
    if (strncmp(info, "5.5.5-", 6) == 0)
        info += 6;
    for (int i = 0; i < 3; i++) {
        char *end;
        version = version * 100 + (uint32_t)strtoul(info, &end, 10);
        info = *end == '.' ? end + 1 : end;
    }
    return version;
}

static enum err_class start_session(struct conn *conn, struct err *err)
{
    const char *info = mysql_get_server_info(conn->db);
    conn->mariadb = strstr(info, "MariaDB") != NULL;
    conn->version = version_of(info);
    enum err_class class = set_session(conn, err);
    if (!class)
        class = verify_session(conn, err);
    if (!class)
        class = read_thread_and_start(conn, err);
    /* The reads above have opened a transaction. */
    if (!class)
        class = conn_run_text(conn, "ROLLBACK", "session", err);
    conn->leftover = false;
    return class;
}

enum err_class conn_open(struct conn *conn, struct err *err)
{
    enum err_class class = ERR_RECONNECT;
    uint32_t tries = conn->config->host_count > 1 ? conn->config->host_count : 1;
    if (conn->state == CONN_IN_TX)
        return err_set(err, ERR_FATAL, 0, "connect", "a transaction is open");
    if (conn->state == CONN_IDLE && !is_stale(conn))
        return ERR_NONE;
    conn_close(conn);
    for (uint32_t i = 0; i < tries; i++) {
        class = connect_host(conn, err);
        if (!class) {
            conn->state = CONN_IDLE;
            class = start_session(conn, err);
        }
        if (!class)
            return ERR_NONE;
        conn_close(conn);
        next_host(conn);
    }
    return class;
}
