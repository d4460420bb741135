# SPDX-License-Identifier: MIT
"""text: the two small formats of the tests: YAML out, logfmt in."""
import json
import re

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*\Z")
# Words that a YAML reader could take for something else than text.
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def _scalar(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    text = str(value)
    # Durations, sizes and the like are plain words with a digit in front.
    plain = _PLAIN.match(text) or re.match(r"\d+(ms|s|m|h|d|KiB|MiB)\Z", text)
    if plain and text.lower() not in _WORDS:
        return text
    return json.dumps(text, ensure_ascii=False)


def _flow(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(k)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_flow(v) for v in value) + "]"
    return _scalar(value)


def _simple(value):
    """What fits on one line in flow form."""
    if isinstance(value, (list, tuple)):
        return all(not isinstance(v, (dict, list, tuple)) for v in value) or not value
    return not isinstance(value, dict) or not value


def _block(value, indent):
    pad = " " * indent
    lines = []
    if isinstance(value, dict):
        for key, entry in value.items():
            if _simple(entry):
                lines.append(f"{pad}{_scalar(key)}: {_flow(entry)}")
            else:
                lines.append(f"{pad}{_scalar(key)}:")
                lines += _block(entry, indent + 2)
    else:
        for entry in value:
            if _simple(entry):
                lines.append(f"{pad}- {_flow(entry)}")
            else:
                inner = _block(entry, indent + 2)
                lines.append(f"{pad}- {inner[0].lstrip()}")
                lines += inner[1:]
    return lines


def dump_yaml(value):
    """A dict as a YAML document of the kind that people write."""
    return "\n".join(_block(value, 0)) + "\n"


_FIELD = re.compile(r'([^\s="]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))')
_ESCAPE = re.compile(r'\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))')
_SHORT = {"n": "\n", "t": "\t", "r": "\r"}


def _unescape(match):
    digits = match.group(1) or match.group(2)
    return chr(int(digits, 16)) if digits else _SHORT.get(match.group(3), match.group(3))


def parse_logfmt(line):
    """One logfmt line as a dict of texts; {} if nothing in it looks like a field."""
    fields = {}
    for name, quoted, bare in _FIELD.findall(line):
        fields[name] = _ESCAPE.sub(_unescape, quoted) if quoted else bare
    return fields
