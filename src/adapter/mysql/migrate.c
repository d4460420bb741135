/* SPDX-License-Identifier: MIT */
/* migrate: brings idemd's own tables up to date, version by version, for idemctl and the start of idemd. Never goes
 * back. */
#include "idem/adapter/mysql_migrate.h"

#include "idem/base/sha256.h"
#include "migrate_list.h"

#include <stdio.h>

enum { VERSIONS_MAX = 256, SQL_MAX = 1024 };

/* One migrator a database. Hashed: a lock's name has room for 64 characters, as a database's name alone has. */
#define LOCK_NAME "CONCAT('idemd-migrate-', LEFT(SHA2(DATABASE(), 256), 40))"

/* As in 0001: idem_schema has to be there before any migration can be noted in it. */
static const char schema_table[] =
    "CREATE TABLE IF NOT EXISTS idem_schema ("
    "version INT UNSIGNED NOT NULL, name VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, "
    "checksum BINARY(32) NOT NULL, state TINYINT UNSIGNED NOT NULL DEFAULT 0 COMMENT '0=started 1=done', "
    "applied_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)), "
    "PRIMARY KEY (version)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4";

struct stored_version {
    uint32_t version;
    bool done;
    uint8_t checksum[SHA256_LEN];
};

struct stored_versions {
    struct stored_version list[VERSIONS_MAX];
    uint32_t count;
};

static uint32_t number_of(struct bytes text)
{
    uint32_t number = 0;
    for (size_t i = 0; i < text.len; i++)
        number = number * 10 + (uint32_t)(text.at[i] - '0');
    return number;
}

static enum err_class read_versions(struct conn *conn, struct stored_versions *ret, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t count;
    ret->count = 0;
    enum err_class class = conn_run_text(conn, "SELECT version, state, checksum FROM idem_schema ORDER BY version",
                                         "schema", err);
    while (class == ERR_NONE && conn_next(conn, &cells, &count)) {
        if (ret->count == VERSIONS_MAX || cells[2].text.len != SHA256_LEN)
            continue;
        struct stored_version *version = &ret->list[ret->count++];
        version->version = number_of(cells[0].text);
        version->done = number_of(cells[1].text) == 1;
        memcpy(version->checksum, cells[2].text.at, SHA256_LEN);
    }
    conn_done(conn);
    return class;
}

static const struct stored_version *find_version(const struct stored_versions *stored, uint32_t version)
{
    for (uint32_t i = 0; i < stored->count; i++)
        if (stored->list[i].version == version)
            return &stored->list[i];
    return NULL;
}

static enum err_class check_checksum(const struct migration *migration, const struct stored_version *stored,
                                     struct err *err)
{
    uint8_t digest[SHA256_LEN];
    sha256(migration->text, digest);
    if (memcmp(digest, stored->checksum, SHA256_LEN) == 0)
        return ERR_NONE;
    return err_set(err, ERR_CONFIG, 0, "migrate",
                   "migration %04u was applied with another text: its checksum differs", migration->version);
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

/* Length of the first statement of text, up to its semicolon (not counted); texts and comments may hold semicolons. */
static size_t statement_length(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.at[i];
        if (c == ';')
            return i;
        if (c == '-' && i + 1 < text.len && text.at[i + 1] == '-') {
            while (i < text.len && text.at[i] != '\n')
                i++;
        } else if (c == '\'' || c == '"' || c == '`') {
            for (i++; i < text.len && text.at[i] != c; i++)
                i += text.at[i] == '\\' && c != '`';
        }
    }
    return text.len;
}

static bool is_empty(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '-' && i + 1 < text.len && text.at[i + 1] == '-') {
            while (i < text.len && text.at[i] != '\n')
                i++;
        } else if (text.at[i] > ' ') {
            return false;
        }
    }
    return true;
}

/* 1050 table exists, 1060 column exists, 1061 index exists: made by the try that was cut off. */
static bool made_before(int number)
{
    return number == 1050 || number == 1060 || number == 1061;
}

static enum err_class run_statements(struct conn *conn, const struct migration *migration, bool again,
                                     struct err *err)
{
    struct bytes rest = migration->text;
    while (rest.len > 0) {
        size_t len = statement_length(rest);
        struct bytes statement = {rest.at, len};
        size_t step = len < rest.len ? len + 1 : len;
        rest = (struct bytes){rest.at + step, rest.len - step};
        if (is_empty(statement))
            continue;
        enum err_class class = conn_run(conn, statement, "migrate", err);
        if (class != ERR_NONE && !(again && made_before(err->number)))
            return class == ERR_UNKNOWN || class == ERR_DATA ? err_set(err, ERR_CONFIG, err->number, "migrate", "%s",
                                                                       err->text)
                                                             : class;
    }
    return ERR_NONE;
}

/* ---- one migration ----------------------------------------------------------------------------------------------- */

static enum err_class note(struct conn *conn, const struct migration *migration, bool done, struct err *err)
{
    char block[SQL_MAX];
    struct buf sql;
    uint8_t digest[SHA256_LEN];
    sha256(migration->text, digest);
    buf_init(&sql, block, sizeof block);
    if (done) {
        buf_printf(&sql, "UPDATE idem_schema SET state=1, applied_at=UTC_TIMESTAMP(6) WHERE version=%u",
                   migration->version);
    } else {
        buf_printf(&sql, "INSERT INTO idem_schema (version, name, checksum, state) VALUES (%u, '%s', ",
                   migration->version, migration->name);
        sql_hex(&sql, bytes_of(digest, sizeof digest));
        buf_text(&sql, ", 0)");
    }
    enum err_class class = conn_run(conn, buf_view(&sql), "migrate", err);
    return class ? class : conn_run_text(conn, "COMMIT", "migrate", err);
}

static enum err_class apply(struct conn *conn, const struct migration *migration, bool again, struct err *err)
{
    enum err_class class = again ? ERR_NONE : note(conn, migration, false, err);
    if (class == ERR_NONE)
        class = run_statements(conn, migration, again, err);
    return class ? class : note(conn, migration, true, err);
}

static enum err_class run_all(struct conn *conn, bool dry_run, uint32_t to, migrate_report *report, void *context,
                              struct err *err)
{
    struct stored_versions stored = {0};
    enum err_class class = dry_run ? ERR_NONE : conn_run_text(conn, schema_table, "migrate", err);
    if (class == ERR_NONE)
        class = read_versions(conn, &stored, err);
    if (dry_run && class == ERR_SCHEMA && err->number == 1146)      /* nothing there yet */
        class = ERR_NONE;
    for (uint32_t i = 0; i < migration_count && class == ERR_NONE; i++) {
        const struct migration *migration = &migrations[i];
        const struct stored_version *known = find_version(&stored, migration->version);
        if (to && migration->version > to)
            break;
        if (known)
            class = check_checksum(migration, known, err);
        if (class != ERR_NONE)
            break;
        if (known && known->done) {
            report(context, migration->version, migration->name, MIGRATE_DONE);
        } else if (dry_run) {
            report(context, migration->version, migration->name, MIGRATE_PENDING);
        } else {
            class = apply(conn, migration, known != NULL, err);
            if (class == ERR_NONE)
                report(context, migration->version, migration->name, known ? MIGRATE_RESUMED : MIGRATE_APPLIED);
        }
    }
    return class;
}

uint32_t migrate_latest(void)
{
    return migrations[migration_count - 1].version;
}

enum err_class migrate_run(struct conn *conn, bool dry_run, uint32_t to, migrate_report *report, void *context,
                           struct err *err)
{
    const struct conn_cell *cells;
    uint32_t count;
    enum err_class class = conn_begin(conn, err);
    if (class == ERR_NONE)
        class = conn_run_text(conn, "SELECT GET_LOCK(" LOCK_NAME ", 10)", "migrate", err);
    bool locked = class == ERR_NONE && conn_next(conn, &cells, &count) && !cells[0].is_null &&
                  bytes_equal(cells[0].text, BYTES_LIT("1"));
    conn_done(conn);
    if (class == ERR_NONE && !locked)
        class = err_set(err, ERR_LOCKED, 0, "migrate", "another migrator is at work");
    if (class == ERR_NONE)
        class = run_all(conn, dry_run, to, report, context, err);
    struct err ignored;
    if (locked && conn_state(conn) == CONN_IN_TX &&
        conn_run_text(conn, "SELECT RELEASE_LOCK(" LOCK_NAME ")", "migrate", &ignored) == ERR_NONE)
        conn_done(conn);
    conn_rollback(conn);
    return class;
}

enum err_class migrate_verify(struct conn *conn, bool *ret_newer, struct err *err)
{
    struct stored_versions stored;
    *ret_newer = false;
    enum err_class class = conn_begin(conn, err);
    if (class == ERR_NONE)
        class = read_versions(conn, &stored, err);
    conn_rollback(conn);
    if (class == ERR_SCHEMA && err->number == 1146)
        return err_set(err, ERR_CONFIG, 1146, "schema", "idemd's tables are missing: run idemctl migrate");
    for (uint32_t i = 0; i < migration_count && class == ERR_NONE; i++) {
        const struct stored_version *known = find_version(&stored, migrations[i].version);
        if (!known || !known->done)
            class = err_set(err, ERR_CONFIG, 0, "schema", "migration %04u is %s: run idemctl migrate",
                            migrations[i].version, known ? "half done" : "missing");
        else
            class = check_checksum(&migrations[i], known, err);
    }
    if (class == ERR_NONE && stored.count > 0)
        *ret_newer = stored.list[stored.count - 1].version > migrations[migration_count - 1].version;
    return class;
}
