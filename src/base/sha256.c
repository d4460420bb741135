/* SPDX-License-Identifier: MIT */
/* sha256: OpenSSL 3 EVP with the algorithm fetched once and a context for each thread: the one-shot calls look
 * the algorithm up every time (crypto(7), "Performance"). The only file that includes OpenSSL. */
#include "idem/base/sha256.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

static EVP_MD *algorithm;
static pthread_key_t context_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void context_free(void *context)
{
    EVP_MD_CTX_free(context);
}

static void fetch(void)
{
    algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!algorithm || pthread_key_create(&context_key, context_free))
        abort();
}

static EVP_MD_CTX *context(void)
{
    static _Thread_local EVP_MD_CTX *mine;
    if (mine)
        return mine;
    pthread_once(&once, fetch);
    mine = EVP_MD_CTX_new();
    if (!mine || pthread_setspecific(context_key, mine))
        abort();
    return mine;
}

void sha256_start(void)
{
    EVP_MD_CTX *mine = context();        /* fetches the algorithm on the first call: not within the next one */
    if (!EVP_DigestInit_ex2(mine, algorithm, NULL))
        abort();
}

void sha256_add(struct bytes bytes)
{
    if (!EVP_DigestUpdate(context(), bytes.at, bytes.len))
        abort();
}

void sha256_finish(uint8_t ret_digest[SHA256_LEN])
{
    if (!EVP_DigestFinal_ex(context(), ret_digest, NULL))
        abort();
}

void sha256(struct bytes bytes, uint8_t ret_digest[SHA256_LEN])
{
    sha256_start();
    sha256_add(bytes);
    sha256_finish(ret_digest);
}
