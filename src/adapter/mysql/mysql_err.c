/* SPDX-License-Identifier: MIT */
/* mysql_err: MySQL error number -> what the caller does about it (details 1, "Error numbers" and
 * "Unknown COMMIT"; hazards M9, M21, M24, M29). A table and two ranges; looks at nothing but the
 * number. */
#include "idem/adapter/mysql_conn.h"

struct number_class {
    uint16_t number;
    enum err_class class;
};

static const struct number_class table[] = {
    /* The lock wait ran out. */
    {1205, ERR_LOCKED}, {3572, ERR_LOCKED},
    /* The transaction is gone, the same one may succeed. 3100, 3101: group replication refused it. */
    {1020, ERR_RETRY}, {1213, ERR_RETRY}, {1317, ERR_RETRY}, {1412, ERR_RETRY}, {1615, ERR_RETRY},
    {1969, ERR_RETRY}, {3024, ERR_RETRY}, {3100, ERR_RETRY}, {3101, ERR_RETRY},
    /* The server lives and cannot work now: no disk, memory, threads, locks, connections. 1047: a node of a cluster
     * that is not ready. 1026: writing a file failed. */
    {1021, ERR_EXHAUSTED}, {1026, ERR_EXHAUSTED}, {1030, ERR_EXHAUSTED}, {1037, ERR_EXHAUSTED}, {1040, ERR_EXHAUSTED},
    {1041, ERR_EXHAUSTED}, {1047, ERR_EXHAUSTED}, {1114, ERR_EXHAUSTED}, {1135, ERR_EXHAUSTED}, {1203, ERR_EXHAUSTED},
    {1206, ERR_EXHAUSTED}, {1226, ERR_EXHAUSTED},
    /* The connection is gone. */
    {1053, ERR_RECONNECT}, {1077, ERR_RECONNECT}, {1079, ERR_RECONNECT}, {1080, ERR_RECONNECT},
    {1129, ERR_RECONNECT}, {1152, ERR_RECONNECT}, {1154, ERR_RECONNECT}, {1155, ERR_RECONNECT},
    {1156, ERR_RECONNECT}, {1157, ERR_RECONNECT}, {1158, ERR_RECONNECT}, {1159, ERR_RECONNECT},
    {1160, ERR_RECONNECT}, {1161, ERR_RECONNECT}, {1184, ERR_RECONNECT}, {1927, ERR_RECONNECT},
    {3169, ERR_RECONNECT}, {4031, ERR_RECONNECT},
    /* Too much at once. */
    {1153, ERR_TOO_LARGE}, {1197, ERR_TOO_LARGE}, {2020, ERR_TOO_LARGE},
    /* Somebody has to change the schema or the grants on it: only what uses them suffers. */
    {1054, ERR_SCHEMA}, {1142, ERR_SCHEMA}, {1143, ERR_SCHEMA}, {1146, ERR_SCHEMA}, {1176, ERR_SCHEMA},
    {1526, ERR_SCHEMA},
    /* Somebody has to change the account, or the configuration of the database as a whole. */
    {1044, ERR_CONFIG}, {1045, ERR_CONFIG}, {1049, ERR_CONFIG}, {1251, ERR_CONFIG}, {1820, ERR_CONFIG},
    {1862, ERR_CONFIG}, {2059, ERR_CONFIG}, {3118, ERR_CONFIG},
    /* A replica. */
    {1290, ERR_WRONG_SERVER}, {1792, ERR_WRONG_SERVER}, {1836, ERR_WRONG_SERVER},
    /* The record's own data. */
    {1048, ERR_DATA}, {1264, ERR_DATA}, {1292, ERR_DATA}, {1364, ERR_DATA}, {1366, ERR_DATA},
    {1406, ERR_DATA}, {1452, ERR_DATA}, {1644, ERR_DATA}, {1690, ERR_DATA}, {3819, ERR_DATA},
    {4025, ERR_DATA},
    {1062, ERR_UNIQUE}, {1586, ERR_UNIQUE},
};

static enum err_class look_up(unsigned number)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].number == number)
            return table[i].class;
    /* Client libraries number theirs 2000-2999, MariaDB's newer ones 5000-5999. */
    if ((number >= 2000 && number < 3000) || (number >= 5000 && number < 6000))
        return ERR_RECONNECT;
    return ERR_UNKNOWN;
}

/* COMMIT: only what is surely rolled back keeps its class. A statement that was interrupted (1317,
 * 1969, 3024) may have been past the point of no return. */
static bool surely_rolled_back(unsigned number, enum err_class class)
{
    if (number == 1317 || number == 1969 || number == 3024 || (number >= 2000 && number < 3000))
        return false;
    return class != ERR_RECONNECT && class != ERR_EXHAUSTED && class != ERR_UNKNOWN;
}

enum err_class mysql_class(unsigned number, bool in_commit)
{
    enum err_class class = number == 0 ? ERR_RECONNECT : look_up(number);
    return in_commit && !surely_rolled_back(number, class) ? ERR_IN_DOUBT : class;
}
