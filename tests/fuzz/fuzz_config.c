/* SPDX-License-Identifier: MIT */
/* fuzz_config: bytes as a configuration file: it loads, or there is a mistake to tell. */
#include "idem/adapter/config_load.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct diagnostic list[64];
    struct diagnostics mistakes = {.list = list, .size = 64};
    struct config *config = NULL;
    if (config_text_load(bytes_of(data, size), "f.yaml", &config, &mistakes))
        config_free(config);
    else if (mistakes.count == 0)
        abort();
    return 0;
}
