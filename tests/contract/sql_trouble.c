/* SPDX-License-Identifier: MIT */
/* sql_trouble: see sql_trouble.h. The second session and the thread that waits live until calm(). */
#include "sql_trouble.h"

#include "cut_proxy.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct mysql_store *troubled;
static struct conn *other;               /* who holds, until calm() */
static pthread_t waiter;
static bool waiting;
static char wait_sql[256];

void session_do(struct conn *conn, const char *format, ...)
{
    char sql[1024];
    struct err err;
    va_list args;
    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    if (conn_state(conn) == CONN_IDLE)
        assert_int_equal(conn_begin(conn, &err), ERR_NONE);
    if (conn_run_text(conn, sql, "test", &err))
        fail_msg("%s in: %s", err.text, sql);
    conn_done(conn);
}

static struct conn *holder(void)
{
    if (!other)
        other = sql_session();
    return other;
}

static void hold_order(void *context, const char *order_no)
{
    (void)context;
    session_do(holder(), "SELECT * FROM orders WHERE order_no='%s' FOR UPDATE", order_no);
}

static void hold_key(void *context, const char *key)
{
    (void)context;
    session_do(holder(), "INSERT INTO idem_record(biz_type,idem_key,biz_no,rule_id,params_hash,identity_hash,"
                         "fingerprint_version,outcome,claim,source,partition_id,kafka_offset,expires_at) VALUES "
                         "('payment','%s','A-1',1,REPEAT('p',32),REPEAT('i',16),1,'first','claim---','kafka',0,77,"
                         "NOW())", key);
}

static void *wait_for_row(void *context)
{
    static struct err ignored;
    /* Waits for the store's lock; the store then closes the circle. */
    conn_run_text(context, wait_sql, "test", &ignored);
    return NULL;
}

static void close_circle(void *context, const char *mine, const char *theirs)
{
    (void)context;
    /* The heavier transaction survives: the store's is the victim. */
    session_do(holder(), "INSERT INTO account(id,balance) VALUES (1,0),(2,0),(3,0),(4,0),(5,0),(6,0),(7,0)");
    session_do(holder(), "UPDATE account SET balance=1");
    session_do(holder(), "UPDATE orders SET amount=11 WHERE order_no='%s'", theirs);
    snprintf(wait_sql, sizeof wait_sql, "UPDATE orders SET status='PENDING' WHERE order_no='%s'", mine);
    assert_int_equal(pthread_create(&waiter, NULL, wait_for_row, other), 0);
    waiting = true;
}

static void kill_session(void *context)
{
    (void)context;
    sql_do("KILL CONNECTION %llu", (unsigned long long)conn_thread_id(mysql_store_conn(troubled)));
}

static void lose_commit(void *context, bool happened)
{
    (void)context;
    cut_proxy_arm(happened);
}

static void outage(void *context)
{
    (void)context;
    cut_proxy_refuse(true);
}

static void calm(void *context)
{
    (void)context;
    if (waiting)
        pthread_join(waiter, NULL);
    waiting = false;
    conn_destroy(other);
    other = NULL;
    cut_proxy_disarm();
    cut_proxy_refuse(false);
}

const struct config *sql_trouble_init(void)
{
    static struct database_config database;
    static struct config config;
    char address[64];
    database = *sql_world_database();
    snprintf(address, sizeof address, "%.*s", (int)database.hosts[0].len, (const char *)database.hosts[0].at);
    database.port = cut_proxy_start(address, database.port);
    config = *port_config();
    config.databases = &database;
    return &config;
}

void sql_trouble_finish(void)
{
    calm(NULL);
    cut_proxy_stop();
}

const struct port_hooks *sql_trouble_hooks(struct mysql_store *store)
{
    static struct port_hooks hooks;
    troubled = store;
    hooks = *sql_world_hooks();
    hooks.hold_order = hold_order;
    hooks.hold_key = hold_key;
    hooks.close_circle = close_circle;
    hooks.kill = kill_session;
    hooks.lose_commit = lose_commit;
    hooks.outage = outage;
    hooks.calm = calm;
    return &hooks;
}
