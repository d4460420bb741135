# SPDX-License-Identifier: MIT
"""exposition: a strict reader of the Prometheus text format 0.0.4. What it does not like fails the test."""
import dataclasses
import re

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_HELP = re.compile(rf"# HELP ({_NAME}) (\S.*)")
_TYPE = re.compile(rf"# TYPE ({_NAME}) (counter|gauge|histogram)")
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (-?[0-9]+(?:\.[0-9]+)?)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)')
_SUFFIXES = ("_bucket", "_sum", "_count")


@dataclasses.dataclass
class Family:
    kind: str
    help: str
    samples: dict           # (name, ((label, value), ...)) -> number


class Exposition:
    """families by name; value() and total() of what was scraped."""

    def __init__(self, text):
        self.families = {}
        assert text.endswith("\n"), "the last line has no end"
        family = name = None
        for line in text.split("\n")[:-1]:
            if line.startswith("# HELP"):
                match = _HELP.fullmatch(line)
                assert match and match[1] not in self.families, line
                name = match[1]
                family = self.families[name] = Family(None, match[2], {})
            elif line.startswith("#"):
                match = _TYPE.fullmatch(line)
                assert match and match[1] == name and family.kind is None and not family.samples, line
                family.kind = match[2]
            else:
                self._sample(family, name, line)
        for name, family in self.families.items():
            assert family.kind, f"{name} has no type"
            if family.kind == "histogram":
                self._check_histogram(name, family)

    @staticmethod
    def _sample(family, name, line):
        match = _SAMPLE.fullmatch(line)
        assert match and family and family.kind, line
        base = name if family.kind != "histogram" else None
        names = [base] if base else [name + suffix for suffix in _SUFFIXES]
        assert match[1] in names, f"{line} in the block of {name}"
        labels, rest = [], match[2] or ""
        assert match[2] != "", line
        while rest:
            part = _LABEL.match(rest)
            assert part and (part[3] == "," or part.end() == len(rest)), line
            assert not (part[3] == "," and part.end() == len(rest)), line
            unescaped = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], part[2])
            labels.append((part[1], unescaped))
            rest = rest[part.end():]
        assert len({label for label, _ in labels}) == len(labels), line
        key = (match[1], tuple(sorted(labels)))
        assert key not in family.samples, f"twice: {line}"
        number = float(match[3])
        assert family.kind == "gauge" or number >= 0, line
        family.samples[key] = number

    @staticmethod
    def _check_histogram(name, family):
        series = {}
        for (sample, labels), number in family.samples.items():
            rest = tuple(pair for pair in labels if pair[0] != "le")
            one = series.setdefault(rest, {"buckets": []})
            if sample.endswith("_bucket"):
                one["buckets"].append((float(dict(labels)["le"].replace("+Inf", "inf")), number))
            else:
                one[sample.rsplit("_", 1)[1]] = number
        for labels, one in series.items():
            assert "sum" in one and "count" in one, f"{name}{labels}"
            bounds = [bound for bound, _ in one["buckets"]]
            counts = [count for _, count in one["buckets"]]
            assert bounds == sorted(bounds) and bounds[-1] == float("inf"), f"{name}{labels}: {bounds}"
            assert counts == sorted(counts) and counts[-1] == one["count"], f"{name}{labels}: {counts}"

    def _matching(self, name, labels):
        base = name
        if name not in self.families:
            base = next(name[:-len(s)] for s in _SUFFIXES if name.endswith(s))
        for (sample, pairs), number in self.families[base].samples.items():
            have = dict(pairs)
            if sample == name and all(have.get(k) == str(v) for k, v in labels.items()):
                yield have, number

    def series(self, name, **labels):
        """[(labels, number)] of the samples that match."""
        return list(self._matching(name, labels))

    def value(self, name, **labels):
        """The number of the only series that matches."""
        found = self.series(name, **labels)
        assert len(found) == 1, f"{name}{labels}: {found}"
        return found[0][1]

    def total(self, name, **labels):
        return sum(number for _, number in self.series(name, **labels))
