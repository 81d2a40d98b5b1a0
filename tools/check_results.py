#!/usr/bin/env python3
"""Reads the JUnit file of a ctest run: prints `passed failed`, then a line with the reason for each skipped test.

usage: check_results.py JUNIT_XML
"""
import re
import sys
import xml.etree.ElementTree as ElementTree


def reason_of(case):
    """What the test gave to GTEST_SKIP(), printed on the line after `file:line: Skipped`."""
    match = re.search(r": Skipped\n(.*)", case.findtext("system-out") or "")
    return match.group(1).strip() if match else case.find("skipped").get("message", "") or "no reason given"


def main(path):
    cases = ElementTree.parse(path).getroot().findall("testcase")
    skipped = [case for case in cases if case.find("skipped") is not None]
    failed = [case for case in cases if case.find("failure") is not None]
    print(len(cases) - len(skipped) - len(failed), len(failed))
    for case in skipped:
        print(f"{case.get('name')}: {reason_of(case)}")


if __name__ == "__main__":
    main(sys.argv[1])
