#!/usr/bin/env python3
"""Checks that each rule and case listed as built in docs/rules.md is cited by a test, and that tests cite no other rule.

docs/rules.md lists one a line: `- POOL-1 text`, `- R1 text` or `- case 3 text`. A test cites an id in a comment
or in a name's comment: `// POOL-1, R1`, `// case 3`. Rules that are promised but not built stand in
docs/ARCHITECTURE.md; a test may cite those too.

usage: check_rules.py [--self-test]
"""
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RULE = re.compile(r"\b(?:POOL|RES|SUP|TRN|EDG|NUM|EMB)-\d+\b")
LISTED = re.compile(r"^- (?:\*\*)?((?:[A-Z]+-\d+|[A-Z]\d+|case \d+))\b", re.M)


def text_of(path):
    return path.read_text() if path.exists() else ""


def cited(identity, text):
    if identity.startswith("case "):  # "case 3", also in "cases 3, 8 and 12"
        number = identity.split()[1]
        return re.search(rf"//.*\bcases? (?:\d+(?:, | and ))*{number}\b", text) is not None
    return re.search(rf"//.*(?<![\w-]){identity}\b", text) is not None


def check(root):
    listed = LISTED.findall(text_of(root / "docs/rules.md"))
    if not listed:
        return ["docs/rules.md lists no rule: write a line `- POOL-1 text` for each rule built"]
    known = set(listed) | set(RULE.findall(text_of(root / "docs/ARCHITECTURE.md")))
    tests = {path: path.read_text() for path in sorted((root / "tests").rglob("*.cpp"))}
    everything = "\n".join(tests.values())
    faults = [f"docs/rules.md: {identity} is cited by no test" for identity in listed if not cited(identity, everything)]
    for path, text in tests.items():
        for identity in sorted(set(RULE.findall(text)) - known):
            faults.append(f"{path.relative_to(root)}: cites {identity}, which docs/rules.md does not list")
    return faults


def self_test():
    cases = [
        ("- POOL-1 order\n- R1 share\n", "// POOL-1, R1: order\n", 0),
        ("- case 3 empty\n- case 12 mask\n", "// cases 3, 8 and 12\n", 0),
        ("- POOL-1 order\n- POOL-2 thread\n", "// POOL-1\n", 1),
        ("- POOL-1 order\n", "// POOL-1 and POOL-99\n", 1),
        ("- R1 share\n", "template <int R1>\n", 1),
        ("- case 3 empty\n", "// case 30\n", 1),
        ("", "// POOL-1\n", 1),
    ]
    faults = []
    for rules, test, wanted in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / "docs").mkdir()
            (root / "tests").mkdir()
            (root / "docs/rules.md").write_text(rules)
            (root / "tests/a_test.cpp").write_text(test)
            found = check(root)
            if len(found) != wanted:
                faults.append(f"self-test: {rules!r} with {test!r}: {wanted} faults expected, got {found}")
    return faults


if __name__ == "__main__":
    found = self_test() if "--self-test" in sys.argv else check(ROOT)
    print("\n".join(found) or "rules: ok")
    sys.exit(bool(found))
