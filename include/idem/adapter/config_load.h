/* SPDX-License-Identifier: MIT */
/* load: configuration files by libyaml (the only file that sees it), and loading a whole configuration. */
#ifndef IDEM_ADAPTER_YAML_LOAD_H
#define IDEM_ADAPTER_YAML_LOAD_H

#include "idem/core/config.h"

/* Parses one document into a tree in the arena, marks included. false: mistakes were added (syntax, anchors, tags,
 * limits: 4 MiB, depth 64, 100 000 nodes). text is borrowed for the call. */
bool yaml_parse(struct bytes text, struct arena *arena, const struct yaml_node **ret_root,
                struct diagnostics *mistakes);

/* Reads, parses and binds the file; environment and time zones are those of this process. *ret is returned to caller,
 * free with config_free. false: *mistakes says why, *ret is untouched. */
bool config_file_load(const char *path, struct config **ret, struct diagnostics *mistakes);

/* The same from memory; `name` stands for the file in messages. */
bool config_text_load(struct bytes text, const char *name, struct config **ret, struct diagnostics *mistakes);

void config_free(struct config *config);     /* NULL is fine */

#endif
