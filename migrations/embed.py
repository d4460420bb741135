#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embed: migrations/*.sql as one C table, so that the programs know every version, name and text: embed.py OUT SQL..."""
import pathlib
import re
import sys

out, *files = sys.argv[1:]
rows = []
for path in sorted(map(pathlib.Path, files)):
    version, name = re.fullmatch(r"(\d{4})_(\w+)\.sql", path.name).groups()
    data = ",".join(str(b) for b in path.read_bytes())
    rows.append((int(version), name, data))
with open(out, "w", encoding="ascii") as f:
    f.write('/* Made by migrations/embed.py. */\n#include "migrate_list.h"\n\n')
    for version, name, data in rows:
        f.write(f"static const uint8_t text_{version}[] = {{{data}}};\n")
    f.write("const struct migration migrations[] = {\n")
    for version, name, _ in rows:
        f.write(f'    {{{version}, "{name}", {{text_{version}, sizeof text_{version}}}}},\n')
    f.write(f"}};\nconst uint32_t migration_count = {len(rows)};\n")
