/* SPDX-License-Identifier: MIT */
/* token: see token.h. The file is read for each request, so a changed secret holds from the next one on. */
#include "token.h"

#include <stdio.h>
#include <strings.h>

enum { TOKEN_MAX = 4096 };

/* The file without one newline at its end; false (errno set): it cannot be read. */
static bool read_token(struct bytes path, char ret[TOKEN_MAX], size_t *ret_len)
{
    char name[4096];
    if (path.len >= sizeof name)
        return false;
    memcpy(name, path.at, path.len);
    name[path.len] = '\0';
    FILE *file = fopen(name, "re");
    if (!file)
        return false;
    setvbuf(file, NULL, _IONBF, 0);          /* no second copy of the secret */
    size_t len = fread(ret, 1, TOKEN_MAX, file);
    bool good = !ferror(file) && len < TOKEN_MAX;
    fclose(file);
    if (good && len > 0 && ret[len - 1] == '\n')
        len--;
    *ret_len = len;
    return good;
}

enum err_class token_check(struct bytes path, struct err *err)
{
    char token[TOKEN_MAX];
    size_t len = 0;
    bool good = read_token(path, token, &len);
    explicit_bzero(token, sizeof token);
    if (!good)
        return err_set(err, ERR_CONFIG, 0, "http", "http.token_file %.*s cannot be read: %m", (int)path.len,
                       (const char *)path.at);
    if (len == 0)
        return err_set(err, ERR_CONFIG, 0, "http", "http.token_file %.*s is empty", (int)path.len,
                       (const char *)path.at);
    return ERR_NONE;
}

/* Looks at every byte of what was shown, whatever it finds. */
static bool equal_in_constant_time(const char *shown, size_t shown_len, const char *token, size_t token_len)
{
    unsigned char differs = shown_len != token_len;
    for (size_t i = 0; i < shown_len; i++)
        differs |= (unsigned char)((unsigned char)shown[i] ^ (unsigned char)token[i % token_len]);
    return differs == 0;
}

bool token_is_shown(struct bytes path, const char *authorization)
{
    char token[TOKEN_MAX];
    size_t len = 0;
    bool good = read_token(path, token, &len) && len > 0;
    if (good && (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0))
        good = false;
    if (good)
        good = equal_in_constant_time(authorization + 7, strlen(authorization + 7), token, len);
    explicit_bzero(token, sizeof token);
    return good;
}
