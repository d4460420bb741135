/* SPDX-License-Identifier: MIT */
/* sha256: FIPS 180-4 SHA-256 over a list of pieces, through OpenSSL 3 EVP (this is the only file that
 * sees it). Each thread has its own context, made on its first call; later calls allocate nothing. */
#ifndef IDEM_BASE_SHA256_H
#define IDEM_BASE_SHA256_H

#include "idem/base/bytes.h"

enum { SHA256_LEN = 32 };

/* Digest of `bytes`. Aborts the process if the library cannot give SHA-256 (nothing works without). */
void sha256(struct bytes bytes, uint8_t ret_digest[SHA256_LEN]);

/* Incremental form, one at a time in each thread: start, any number of adds, finish. */
void sha256_start(void);
void sha256_add(struct bytes bytes);
void sha256_finish(uint8_t ret_digest[SHA256_LEN]);

#endif
