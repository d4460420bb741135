/* SPDX-License-Identifier: MIT */
/* test_key: names and hashes against the contract's own vectors. */
#include "table.h"

#include "idem/core/key.h"

static void derived_keys_follow_the_vectors(void **state)
{
    static const struct {
        const char *scope, *biz_type, *number, *action, *key;
    } rows[] = {
        {NULL, "payment", "ORD-1001", "pay", "payment:ORD-1001:pay"},
        {"M-7", "payment", "ORD-1001", "pay", "M-7:payment:ORD-1001:pay"},
        {NULL, "payment", "a:b/c%d", "pay", "payment:a%3Ab%2Fc%25d:pay"},
        {NULL, "refund", "订单1", "refund", "refund:%E8%AE%A2%E5%8D%951:refund"},
        {NULL, "payment", "1000000000000000005", "pay", "payment:1000000000000000005:pay"},
        {NULL, "payment", " x\n", "pay", "payment:%20x%0A:pay"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[256];
        struct buf buf;
        buf_init(&buf, text, sizeof text);
        key_derive(rows[i].scope != NULL, bytes_text(rows[i].scope), bytes_text(rows[i].biz_type),
                   bytes_text(rows[i].number), bytes_text(rows[i].action), &buf);
        check_text(buf_view(&buf), rows[i].key, "key");
    }
}

static void supplied_keys_are_8_to_255_of_their_characters(void **state)
{
    char long_key[257];
    (void)state;
    memset(long_key, 'k', sizeof long_key);
    assert_true(key_is_supplied(bytes_of(long_key, 255)));
    assert_false(key_is_supplied(bytes_of(long_key, 256)));
    assert_true(key_is_supplied(bytes_text("a.b-c_d:9")));
    assert_false(key_is_supplied(bytes_text("seven-7")));
    assert_false(key_is_supplied(bytes_text("with blank")));
    assert_false(key_is_supplied(bytes_text("percent%20")));
    assert_false(key_is_supplied(bytes_of("eight\0ok", 8)));
}

static void parameter_hashes_follow_the_vectors(void **state)
{
    const struct hash_part full[] = {
        {bytes_text("/order_no"), VALUE_TEXT, bytes_text("ORD-1001")},
        {bytes_text("amount"), VALUE_DECIMAL, bytes_text("100.00")},
        {bytes_text("currency"), VALUE_TEXT, bytes_text("CNY")},
        {bytes_text("/channel_txn"), VALUE_TEXT, bytes_text("4200001")}};
    const struct hash_part empty[] = {{bytes_text("a"), VALUE_ABSENT, {0}},
                                      {bytes_text("b"), VALUE_NULL, {0}},
                                      {bytes_text("c"), VALUE_TEXT, bytes_text("")}};
    uint8_t hash[PARAMS_HASH_LEN];
    (void)state;
    params_hash(1, bytes_text("pay"), full, 4, hash);
    check_hex(hash, sizeof hash, "419dd243d53ef6fa8061037c85e45d24e422db2b503df07d9670b273d4b5b4a0", "params");
    params_hash(1, bytes_text("pay"), empty, 3, hash);
    check_hex(hash, sizeof hash, "052aa83beab543317f1823008bc116f9606bc17b21c4b05d1dabdb32f3a8d4fe", "absences");
}

static void identities_events_and_origins_follow_the_vectors(void **state)
{
    const struct hash_part part = {bytes_text("channel_txn"), VALUE_TEXT, bytes_text("4200001")};
    uint8_t identity[IDENTITY_HASH_LEN], params[PARAMS_HASH_LEN], origin[32], none[IDENTITY_HASH_LEN] = {0};
    char event[EVENT_ID_LEN];
    struct bytes type = bytes_text("payment"), key = bytes_text("payment:ORD-1001:pay");
    (void)state;
    identity_hash(&part, 1, identity);
    check_hex(identity, sizeof identity, "a2fef407c4b18430914b6abfd19b7bb7", "identity");
    event_id(type, key, identity, bytes_text("first"), 0, event);
    check_text(bytes_of(event, sizeof event), "a40e1c3e703b4159a1c8dd8dcb36a818", "event");
    static const uint8_t vector[] = {0x41, 0x9d, 0xd2, 0x43, 0xd5, 0x3e, 0xf6, 0xfa, 0x80, 0x61, 0x03,
                                     0x7c, 0x85, 0xe4, 0x5d, 0x24, 0xe4, 0x22, 0xdb, 0x2b, 0x50, 0x3d,
                                     0xf0, 0x7d, 0x96, 0x70, 0xb2, 0x73, 0xd4, 0xb5, 0xb4, 0xa0};
    memcpy(params, vector, sizeof params);
    origin_hash_key(type, key, bytes_of(params, sizeof params), bytes_text("state_conflict"), origin);
    check_hex(origin, 32, "0625faf1b428e091f90cb1f77e6d2edb0d0a28170cda708aa2f60f7a87cba6ef", "conflict");
    origin_hash_key(type, key, bytes_of(identity, sizeof identity), bytes_text("applied_by_other"), origin);
    check_hex(origin, 32, "f1181396fe38cf0bba14cad63eca9d58e47716a55c1465a797216969726a38bd", "other");
    origin_hash_record(bytes_text("payment.callback"), 3, 42, 1764547200000, bytes_text("{broken"), origin);
    check_hex(origin, 32, "8e371c5637e237c87b34a9a2d3cf5c1c5753a11d3ed420636c9d8fbe05501472", "invalid");
    identity_hash(NULL, 0, identity);
    assert_memory_equal(identity, none, sizeof none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derived_keys_follow_the_vectors),
        cmocka_unit_test(supplied_keys_are_8_to_255_of_their_characters),
        cmocka_unit_test(parameter_hashes_follow_the_vectors),
        cmocka_unit_test(identities_events_and_origins_follow_the_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
