/* SPDX-License-Identifier: MIT */
/* replay: runs a fuzz harness over the files of a folder, without a fuzzer: the corpus in the unit suite. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *folder, const char *name)
{
    static uint8_t data[1 << 20];
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t len = fread(data, 1, sizeof data, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, len);
    /* Every prefix too: most crashes of parsers lie in what is cut off. */
    for (size_t i = 0; i < len; i += 1 + len / 200)
        LLVMFuzzerTestOneInput(data, i);
    return 1;
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    int files = 0;
    if (!folder) {
        fputs("usage: replay FOLDER\n", stderr);
        return 64;
    }
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            files += run_file(argv[1], entry->d_name);
    closedir(folder);
    printf("%d files\n", files);
    return files > 0 ? 0 : 1;
}
