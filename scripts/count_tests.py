#!/usr/bin/env python3
"""Counts test cases from Bazel's build events.

  count_tests.py EVENTS_JSON [BAZEL_EXIT_CODE]

Prints the slowest targets, each skip and each failure with its reason, and as
the last line "N passed, M failed". A target that did not build, did not run
or ended without a report counts as one failure, and so does an exit code of
Bazel that no failed target explains (a BUILD file that does not load). Exits with 0 only if
something passed and nothing failed. Python 3 standard library only.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree

SLOWEST = 15


def read_events(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


class Target:
    """One Bazel test target and its reports."""

    def __init__(self, label):
        self.label = label
        self.status = "DID NOT BUILD OR RUN"
        self.seconds = 0.0
        self.cached = False
        self.reports = []


def read_targets(path):
    targets = {}

    def target(label):
        return targets.setdefault(label, Target(label))

    for event in read_events(path):
        identity = event.get("id", {})
        if "targetConfigured" in identity:
            configured = event.get("configured", {})
            if "testSize" in configured:
                target(identity["targetConfigured"]["label"])
        elif "targetCompleted" in identity:
            # A target that --config=cuda alone can build.
            if event.get("aborted", {}).get("reason") == "SKIPPED":
                targets.pop(identity["targetCompleted"]["label"], None)
        elif "testResult" in identity:
            result = event.get("testResult", {})
            one = target(identity["testResult"]["label"])
            one.seconds += int(result.get("testAttemptDurationMillis", 0)) / 1e3
            one.cached |= result.get("cachedLocally", False)
            one.reports += [output["uri"]
                            for output in result.get("testActionOutput", [])
                            if output["name"] == "test.xml"]
        elif "testSummary" in identity:
            one = target(identity["testSummary"]["label"])
            one.status = event["testSummary"]["overallStatus"]
    return list(targets.values())


def read_cases(uri):
    """Yields (name, outcome, reason) of each case of a JUnit report."""
    path = urllib.parse.unquote(urllib.parse.urlparse(uri).path)
    root = xml.etree.ElementTree.parse(path).getroot()
    for case in root.iter("testcase"):
        name = "%s.%s" % (case.get("classname", ""), case.get("name", ""))
        failure = case.find("failure")
        if failure is None:
            failure = case.find("error")
        skipped = case.find("skipped")
        if failure is not None:
            yield name, "failed", failure.get("message", "")
        elif skipped is not None or case.get("result") == "skipped":
            reason = "" if skipped is None else skipped.get("message", "")
            yield name, "skipped", reason
        else:
            yield name, "passed", ""


def count(targets):
    """Returns ({outcome: number}, lines about skips and failures)."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    lines = []
    for target in targets:
        before = counts["failed"]
        try:
            for report in target.reports:
                for name, outcome, reason in read_cases(report):
                    counts[outcome] += 1
                    if outcome != "passed":
                        first = " ".join(reason.split("\n")[-3:]).strip()
                        lines.append("%s %s %s: %s" % (
                            outcome.upper(), target.label, name, first[:200]))
        except (OSError, xml.etree.ElementTree.ParseError) as error:
            lines.append("FAILED %s: no report: %s" % (target.label, error))
        if target.status not in ("PASSED", "FLAKY") and \
                counts["failed"] == before:
            counts["failed"] += 1
            lines.append("FAILED %s: %s" % (target.label, target.status))
    return counts, lines


def main(argv):
    if len(argv) not in (1, 2):
        sys.stderr.write(__doc__)
        return 2
    targets = read_targets(argv[0])
    counts, lines = count(targets)
    print("%d test targets; the slowest:" % len(targets))
    for target in sorted(targets, key=lambda one: -one.seconds)[:SLOWEST]:
        print("%8.1f s  %s%s" % (target.seconds, target.label,
                                 " (cached)" if target.cached else ""))
    for line in lines:
        print(line)
    if counts["skipped"]:
        print("%d cases were skipped" % counts["skipped"])
    if not targets or not counts["passed"]:
        print("no test ran")
        counts["failed"] += 1
    if len(argv) == 2 and argv[1] != "0" and not counts["failed"]:
        print("FAILED bazel: exit code %s" % argv[1])
        counts["failed"] += 1
    print("%d passed, %d failed" % (counts["passed"], counts["failed"]))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
