#!/usr/bin/env python3
"""Counts test cases from Bazel's build events.

  count_tests.py EVENTS_JSON [BAZEL_EXIT_CODE]

Prints the slowest targets, each failure and the skips of each target with their
reason, and as the last line "N passed, M failed", with ", K skipped" after it
where there are any. A target that did not build, did not run
or ended without a report counts as one failure, and so does an exit code of
Bazel that no failed target explains (a BUILD file that does not load). Of a
target that was run again (--flaky_test_attempts) the last attempt counts; what
failed before it passed is printed as FLAKY. Exits with 0 only if something
passed and nothing failed. Python 3 standard library only.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree

SLOWEST = 15
# Of a failed attempt's report.
REPORT_LINES = 60


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
        # {(run, shard): the reports of each attempt, in order}
        self.attempts = {}

    def add_attempt(self, identity, reports):
        part = (identity.get("run", 1), identity.get("shard", 1))
        self.attempts.setdefault(part, []).append(reports)

    def reports(self, last):
        """The reports of the last attempts, or of those before them."""
        return [report for attempts in self.attempts.values()
                for attempt in (attempts[-1:] if last else attempts[:-1])
                for report in attempt]


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
            one.add_attempt(identity["testResult"], [
                output["uri"] for output in result.get("testActionOutput", [])
                if output["name"] == "test.xml"])
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


def last_lines(reason):
    return " ".join(reason.split("\n")[-3:]).strip()[:200]


def flaky_lines(target):
    """About each case that failed in an attempt before one that passed.

    Bazel prints no log of such an attempt, so the end of its report follows.
    """
    lines = []
    if target.status != "FLAKY":
        return lines
    for report in target.reports(last=False):
        try:
            failed = [(name, reason)
                      for name, outcome, reason in read_cases(report)
                      if outcome == "failed"]
        except (OSError, xml.etree.ElementTree.ParseError):
            failed = []
        for name, reason in failed or [("", "an attempt failed")]:
            lines.append("FLAKY %s %s:" % (target.label, name))
            lines += ["    " + line
                      for line in reason.split("\n")[-REPORT_LINES:]]
    return lines


def skip_lines(skips):
    """One line for the skips of a target with one reason, the most first."""
    return ["SKIPPED %s: %s: %s" % (
        label, cases[0] if len(cases) == 1 else "%d cases" % len(cases),
        reason or "no reason given")
            for (label, reason), cases in sorted(
                skips.items(), key=lambda one: (-len(one[1]), one[0]))]


def count(targets):
    """Returns ({outcome: number}, lines about failures and then skips)."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    lines = []
    # {(label, reason): the names of cases}
    skips = {}
    for target in targets:
        before = counts["failed"]
        lines += flaky_lines(target)
        try:
            for report in target.reports(last=True):
                for name, outcome, reason in read_cases(report):
                    counts[outcome] += 1
                    if outcome == "failed":
                        lines.append("FAILED %s %s: %s" % (
                            target.label, name, last_lines(reason)))
                    elif outcome == "skipped":
                        skips.setdefault((target.label, last_lines(reason)),
                                         []).append(name)
        except (OSError, xml.etree.ElementTree.ParseError) as error:
            lines.append("FAILED %s: no report: %s" % (target.label, error))
        if target.status not in ("PASSED", "FLAKY") and \
                counts["failed"] == before:
            counts["failed"] += 1
            lines.append("FAILED %s: %s" % (target.label, target.status))
    return counts, lines + skip_lines(skips)


def last_line(counts):
    line = "%d passed, %d failed" % (counts["passed"], counts["failed"])
    if counts["skipped"]:
        line += ", %d skipped" % counts["skipped"]
    return line


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
    if not targets or not counts["passed"]:
        print("no test ran")
        counts["failed"] += 1
    if len(argv) == 2 and argv[1] != "0" and not counts["failed"]:
        print("FAILED bazel: exit code %s" % argv[1])
        counts["failed"] += 1
    flaky = [target.label for target in targets if target.status == "FLAKY"]
    if flaky:
        print("%d targets passed only when run again: %s" % (
            len(flaky), " ".join(flaky)))
    print(last_line(counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
