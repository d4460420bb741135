#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tidy: holds the house rules that a compiler does not know.

    tidy.py [TOP]          checks the checkout; prints FILE:LINE: MESSAGE, exit 1 if there is any
    tidy.py --self-test    proves that each check can fail, and that a clean tree passes

It reads C roughly: comments and literals are blanked, a function ends at a brace in column 0.
"""
import pathlib
import re
import sys
import tempfile

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 120

# Who may include whom: itself and what is named here. app and adapter never see each other.
FLOORS = {
    "base": set(),
    "core": {"base"},
    "port": {"base", "core"},
    "app": {"base", "core", "port"},
    "adapter": {"base", "core", "port"},
    "program": {"base", "core", "port", "app", "adapter"},
}
PROGRAMS = {"idemd", "idemctl"}

# A library lives in one place; in the tests only these folders may name it beside that place.
THIRD_PARTY = [
    (re.compile(r"(mysql|mariadb)(/|\.h|d)"), "src/adapter/mysql/"),
    (re.compile(r"librdkafka/"), "src/adapter/kafka/"),
    (re.compile(r"yyjson"), "src/adapter/json/"),
    (re.compile(r"yaml\.h"), "src/adapter/yaml/"),
    (re.compile(r"systemd/"), "src/adapter/systemd/"),
    (re.compile(r"hiredis"), "src/adapter/redis/"),
    (re.compile(r"microhttpd"), "src/adapter/http/"),
    (re.compile(r"openssl/"), "src/base/sha256.c"),
]
TESTS_THIRD_PARTY = ("tests/programs/", "tests/contract/")

BANNED = ("strcpy strcat sprintf vsprintf atoi atol atoll strtok strtok_r gets system sleep usleep "
          "alloca").split()
# core is pure: no memory of its own, no input, output, clock, threads or environment.
IMPURE = ("malloc calloc realloc free strdup printf fprintf vfprintf puts fopen open read write "
          "time clock_gettime gettimeofday getenv rand random exit nanosleep").split()
IMPURE_HEADERS = re.compile(r"(pthread|threads|unistd|fcntl|signal|poll|stdatomic|sys/\w+)\.h")

# Split, so that this file passes its own check.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(home/\w+|root/|Users/\w+|wo" + r"rk/)")
TEXT_SUFFIXES = {".c", ".h", ".py", ".sh", ".md", ".sql", ".yaml", ".yml", ".build", ".service",
                 ".txt", ".supp", ""}
TEXT_FOLDERS = ("src", "include", "tests", "scripts", "config", "systemd", "migrations", "docs",
                "man", "bench", ".ci")
# Input of tests, as foreign as it came.
FOREIGN = re.compile(r"(^|/)(corpus|callbacks|fixtures|data|results)/")


def blank_literals(text):
    """The text with comments, strings and characters blanked; lines and columns stay."""
    pattern = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'", re.S)

    def blank(match):
        kept = re.sub(r"[^\n]", " ", match.group())
        if match.group()[0] in "\"'":
            kept = match.group()[0] + kept[1:-1] + match.group()[0]
        return kept
    return pattern.sub(blank, text)


class Tidy:
    def __init__(self, top):
        self.top = pathlib.Path(top)
        self.found = []

    def report(self, path, line, message):
        self.found.append(f"{path}:{line}: {message}")

    def files(self):
        for folder in TEXT_FOLDERS:
            for path in sorted((self.top / folder).rglob("*")):
                name = path.relative_to(self.top).as_posix()
                if path.is_file() and not FOREIGN.search(name) and "__pycache__" not in name:
                    yield name, path

    def run(self):
        for name, path in self.files():
            if path.suffix not in TEXT_SUFFIXES:
                continue
            try:
                text = path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                self.report(name, 1, "not UTF-8 text")
                continue
            self.check_text(name, text)
            if path.suffix in (".c", ".h"):
                self.check_c(name, text)
        self.check_orphans()
        return self.found

    # All text

    def check_text(self, name, text):
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                self.report(name, number, "white space at the end of the line")
            if UNFINISHED.search(line):
                self.report(name, number, "unfinished: " + UNFINISHED.search(line).group())
            if MACHINE_PATH.search(line):
                self.report(name, number, "a path of one machine: "
                            + MACHINE_PATH.search(line).group())
        if text and not text.endswith("\n"):
            self.report(name, text.count("\n") + 1, "no line end at the end of the file")

    # C

    def check_c(self, name, text):
        lines = text.split("\n")
        code = blank_literals(text).split("\n")
        self.check_opening(name, lines)
        if len(lines) - 1 > FILE_LINES_MAX:
            self.report(name, FILE_LINES_MAX + 1,
                        f"{len(lines) - 1} lines, at most {FILE_LINES_MAX}")
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS_MAX:
                self.report(name, number, f"{len(line)} columns, at most {COLUMNS_MAX}")
            if "\t" in line:
                self.report(name, number, "a tab")
        self.check_comments(name, text)
        self.check_calls(name, code)
        self.check_functions(name, code)
        self.check_includes(name, lines)
        if name.startswith("include/"):
            self.check_declarations(name, lines, code)

    def check_opening(self, name, lines):
        licensed = lines[0] == "/* SPDX-License-Identifier: MIT */"
        if not licensed:
            self.report(name, 1, "the first line is not /* SPDX-License-Identifier: MIT */")
        opening = re.match(r"/\*.*?\*/", "\n".join(lines[licensed:]), re.S)
        if not opening or len(re.findall(r"\w+", opening.group())) < 5:
            self.report(name, 2, "no opening comment: what is it, for whom, what does it never do")

    def check_comments(self, name, text):
        bare = re.sub(r"/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'",
                      lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
        for number, line in enumerate(bare.split("\n"), 1):
            if "//" in line:
                self.report(name, number, "a // comment")

    def check_calls(self, name, code):
        core = name.startswith(("src/core/", "include/idem/core/"))
        banned = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
        impure = re.compile(r"(?<![\w.>])(" + "|".join(IMPURE) + r")\s*\(")
        for number, line in enumerate(code, 1):
            for call in banned.findall(line):
                self.report(name, number, f"banned call: {call}")
            if core:
                for call in impure.findall(line):
                    self.report(name, number, f"core is pure: {call}")

    def check_functions(self, name, code):
        """A function: from its `{` (column 0, or the end of a signature in column 0) to `}`."""
        begin = None
        for number, line in enumerate(code, 1):
            if begin is None:
                if line.startswith("{") or re.match(r"[A-Za-z_][^=;]*\)\s*\{\s*$", line):
                    begin = number
            elif line.startswith("}"):
                if number - begin + 1 > FUNCTION_LINES_MAX:
                    self.report(name, begin, f"a function of {number - begin + 1} lines, "
                                             f"at most {FUNCTION_LINES_MAX}")
                begin = None

    def floor_of(self, name):
        parts = name.split("/")
        if parts[0] == "src":
            return "program" if parts[1] in PROGRAMS else parts[1]
        if parts[:2] == ["include", "idem"]:
            return parts[2]
        return None

    def check_includes(self, name, lines):
        floor = self.floor_of(name)
        if floor is not None and floor not in FLOORS:
            self.report(name, 1, f"no such floor: {floor}")
            floor = None
        for number, line in enumerate(lines, 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not match:
                continue
            quote, header = match.groups()
            self.check_third_party(name, number, header)
            if floor:
                self.check_floor(name, number, floor, quote, header)

    def check_third_party(self, name, number, header):
        for pattern, home in THIRD_PARTY:
            if pattern.match(header) and not name.startswith(home) \
                    and not name.startswith(TESTS_THIRD_PARTY):
                self.report(name, number, f"{header} belongs to {home} alone")

    def check_floor(self, name, number, floor, quote, header):
        if floor == "core" and IMPURE_HEADERS.fullmatch(header):
            self.report(name, number, f"core is pure: <{header}>")
        parts = header.split("/")
        if parts[0] == "idem":
            other = parts[1] if len(parts) > 2 else "?"
            if other != floor and other not in FLOORS[floor]:
                self.report(name, number, f"{floor} must not include {other}: {header}")
            if not (self.top / "include" / header).exists():
                self.report(name, number, f"no such header: {header}")
        elif quote == '"':
            # A header that is not in include/ belongs to its own folder.
            if "/" in header:
                self.report(name, number, f"{header}: a header of another folder")
            elif not (self.top / name).with_name(header).exists():
                self.report(name, number, f"no such header beside this file: {header}")

    def check_declarations(self, name, lines, code):
        """Each function declared has a comment on the line before it (or before the unbroken
        group of declarations that it is in), or beside it."""
        number = 0
        # The opening comment is the file's, not a function's.
        while number < len(code) and lines[number].strip() and not code[number].strip():
            number += 1
        explained = False
        while number < len(code):
            line, real = code[number], lines[number]
            if not real.strip():
                explained = False
            elif not line.strip():
                # Nothing but a comment, or the middle of one.
                explained = True
            elif re.match(r"[A-Za-z_][\w\s*]*\b\w+\s*\(", line) and \
                    not re.match(r"(typedef|struct\s+\w+\s*\{|enum|static|_Static_assert)\b", line):
                last = number
                while last + 1 < len(code) and not re.search(r"[;{]\s*$", code[last]):
                    last += 1
                beside = any("/*" in x for x in lines[number:last + 1])
                if not explained and not beside:
                    self.report(name, number + 1, "a public function without a comment")
                number = last
            elif line[0] not in " })":
                explained = False
            number += 1

    def check_orphans(self):
        """A source that no meson.build names is dead."""
        for folder in ("src", "tests"):
            for path in sorted((self.top / folder).rglob("*.c")):
                name = path.relative_to(self.top).as_posix()
                if FOREIGN.search(name):
                    continue
                above = [path.parent, *path.parent.parents]
                above = above[:above.index(self.top) + 1]
                words = "".join((d / "meson.build").read_text() for d in above
                                if (d / "meson.build").exists())
                if path.name not in words and f"'{path.stem}'" not in words:
                    self.report(name, 1, "no meson.build names this file")


# Self-test

HEAD = "/* SPDX-License-Identifier: MIT */\n/* thing: one small thing, for the test of tidy. */\n"
CLEAN = {
    "src/core/meson.build": "lib('good.c')\n",
    "src/core/good.c": HEAD + '#include "idem/core/good.h"\n\nint good(void)\n{\n'
                              '    return "TO" "DO sprintf( //"[0]; /* sprintf( is banned */\n}\n',
    "include/idem/core/good.h": HEAD + "\n/* Always 1. */\nint good(void);\n\n"
                                       "/* Two of a kind. */\nint one(int a,\n        int b);\n"
                                       "int two(void);\nint three(void); /* Always 3. */\n",
    "include/idem/base/low.h": HEAD,
    "include/idem/app/flow.h": HEAD,
    "include/idem/adapter/lib.h": HEAD,
    "src/app/local.h": HEAD,
}

# (what must be said, file, its text after the opening)
BAD = [
    ("must not include app", "src/core/good.c", '#include "idem/app/flow.h"\n'),
    ("must not include core", "include/idem/base/low.h", '#include "idem/core/good.h"\n'),
    ("must not include adapter", "include/idem/app/flow.h", '#include "idem/adapter/lib.h"\n'),
    ("must not include app", "include/idem/adapter/lib.h", '#include "idem/app/flow.h"\n'),
    ("no such header", "src/core/good.c", '#include "idem/base/nothing.h"\n'),
    ("no such header beside", "src/core/good.c", '#include "local.h"\n'),
    ("another folder", "src/core/good.c", '#include "../app/local.h"\n'),
    ("no such floor", "src/cellar/x.h", ""),
    ("belongs to src/adapter/mysql", "src/core/good.c", "#include <mysql.h>\n"),
    ("belongs to src/adapter/mysql", "src/core/good.c", "#include <mysql/mysqld_error.h>\n"),
    ("belongs to src/adapter/mysql", "src/adapter/json/x.h", "#include <errmsg.h>\n"
                                                             "#include <mariadb/mysql.h>\n"),
    ("belongs to src/adapter/kafka", "src/app/local.h", "#include <librdkafka/rdkafka.h>\n"),
    ("belongs to src/adapter/json", "src/adapter/yaml/x.h", "#include <yyjson.h>\n"),
    ("belongs to src/adapter/yaml", "tests/unit/x.h", "#include <yaml.h>\n"),
    ("belongs to src/adapter/systemd", "src/idemd/x.h", "#include <systemd/sd-daemon.h>\n"),
    ("belongs to src/base/sha256.c", "src/base/other.h", "#include <openssl/evp.h>\n"),
    ("core is pure: malloc", "src/core/good.c", "void *f(void)\n{\n    return malloc(1);\n}\n"),
    ("core is pure: <pthread.h>", "src/core/good.c", "#include <pthread.h>\n"),
    ("601 lines", "src/core/good.c", "int x;\n" * (FILE_LINES_MAX - 1)),
    ("a function of 71 lines", "src/core/good.c", "int f(void)\n{\n" + "    x();\n" * 69 + "}\n"),
    ("a function of 71 lines", "src/core/good.c", "int f(void) {\n" + "    x();\n" * 69 + "}\n"),
    ("121 columns", "src/core/good.c", "int " + "x" * 116 + ";\n"),
    ("a tab", "src/core/good.c", "\tint x;\n"),
    ("a // comment", "src/core/good.c", "int x; // no\n"),
    ("white space at the end", "src/core/good.c", "int x; \n"),
    ("no line end", "src/core/good.c", "int x;"),
    ("unfinished", "src/core/good.c", "/* TO" "DO later */\n"),
    ("unfinished", "docs/x.md", "FIX" "ME\n"),
    ("a path of one machine", "scripts/x", "cd /ho" "me/me\n"),
    ("a path of one machine", "docs/x.md", "see `/wo" "rk/x`\n"),
    ("without a comment", "include/idem/core/good.h", "int bare(void);\n"),
    ("without a comment", "include/idem/core/good.h", "\n/* A. */\nint a(void);\n\nint b(void);\n"),
    ("without a comment", "include/idem/core/good.h",
     "/* A thing. */\nstruct a {\n    int b; /* b */\n};\nstruct a *make(int a,\n    int b);\n"),
    ("no meson.build names", "src/core/dead.c", "int x;\n"),
] + [(f"banned call: {call}", "tests/unit/x.h", f"static int f(void)\n{{\n    {call} (1);\n}}\n")
     for call in BANNED]

BAD_OPENINGS = [
    ("the first line is not", "/* thing: one small thing, for the test of tidy. */\nint x;\n"),
    ("no opening comment", "/* SPDX-License-Identifier: MIT */\n#include <stdint.h>\n"),
    ("no opening comment", "/* SPDX-License-Identifier: MIT */\n/* thing */\nint x;\n"),
]


def findings_of(tree):
    with tempfile.TemporaryDirectory() as top:
        for name, text in tree.items():
            path = pathlib.Path(top, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Tidy(top).run()


def self_test():
    troubles = []
    clean = findings_of(CLEAN)
    if clean:
        troubles.append(f"the clean tree is not clean: {clean}")
    cases = [(wanted, name, (HEAD if name.endswith((".c", ".h")) else "") + text)
             for wanted, name, text in BAD]
    cases += [(wanted, "src/core/good.c", text) for wanted, text in BAD_OPENINGS]
    for wanted, name, text in cases:
        found = findings_of({**CLEAN, name: text})
        if not any(wanted in f and f.startswith(name + ":") for f in found):
            troubles.append(f"not found: {wanted!r} in {name}: {text[-80:]!r}; said {found}")
        elif len(found) != 1:
            troubles.append(f"more than {wanted!r}: {found}")
    for trouble in troubles:
        print(trouble)
    print(f"{len(cases) + 1 - len(troubles)} of {len(cases) + 1} cases as they should be")
    return 1 if troubles else 0


def main(args):
    if args == ["--self-test"]:
        return self_test()
    top = pathlib.Path(args[0]) if args else pathlib.Path(__file__).resolve().parents[2]
    found = Tidy(top.resolve()).run()
    for line in found:
        print(line)
    print(f"{len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
