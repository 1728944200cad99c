"""scripts/count_tests.py: what it makes of Bazel's build events."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from tests.integration import harness

LABEL = "//tests:some_test"
PASSED = '<testsuites><testsuite><testcase name="A" classname="S"/>%s' \
    '</testsuite></testsuites>'
FAILED_CASE = '<testcase name="B" classname="S">' \
    '<failure message="what was found"/></testcase>'


class CountTestsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.events = [{"id": {"targetConfigured": {"label": LABEL}},
                        "configured": {"testSize": "SMALL"}}]

    def path(self, name):
        return os.path.join(self.folder, name)

    def attempt(self, number, cases, shard=1):
        report = self.path("%d_%d.xml" % (shard, number))
        with open(report, "w", encoding="utf-8") as file:
            file.write(PASSED % cases)
        self.events.append({
            "id": {"testResult": {"label": LABEL, "run": 1, "shard": shard,
                                  "attempt": number}},
            "testResult": {"testActionOutput": [
                {"name": "test.xml", "uri": "file://" + report}]}})

    def summary(self, status):
        self.events.append({"id": {"testSummary": {"label": LABEL}},
                            "testSummary": {"overallStatus": status}})

    def count(self, bazel_exit_code="0"):
        with open(self.path("events"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(event) + "\n" for event in self.events)
        return subprocess.run(
            [sys.executable, "scripts/count_tests.py", self.path("events"),
             bazel_exit_code],
            stdout=subprocess.PIPE, universal_newlines=True, check=False,
            timeout=60)

    def test_counts_cases_not_targets(self):
        self.attempt(1, '<testcase name="B" classname="S"/>')
        self.summary("PASSED")
        done = self.count()
        self.assertEqual(done.stdout.splitlines()[-1], "2 passed, 0 failed")
        self.assertEqual(done.returncode, 0)

    def test_counts_every_shard(self):
        self.attempt(1, "", shard=1)
        self.attempt(1, "", shard=2)
        self.summary("PASSED")
        self.assertEqual(self.count().stdout.splitlines()[-1],
                         "2 passed, 0 failed")

    def test_a_failed_case_fails_the_whole(self):
        self.attempt(1, FAILED_CASE)
        self.summary("FAILED")
        done = self.count("3")
        self.assertIn("FAILED %s S.B: what was found" % LABEL, done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed")
        self.assertEqual(done.returncode, 1)

    def test_the_last_attempt_counts_and_earlier_failures_are_told(self):
        self.attempt(1, FAILED_CASE)
        self.attempt(2, "")
        self.summary("FLAKY")
        done = self.count()
        self.assertIn("FLAKY %s S.B:\n    what was found" % LABEL, done.stdout)
        self.assertIn("1 targets passed only when run again: " + LABEL,
                      done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 0 failed")
        self.assertEqual(done.returncode, 0)

    def test_what_fails_at_every_attempt_fails_once(self):
        for attempt in 1, 2, 3:
            self.attempt(attempt, FAILED_CASE)
        self.summary("FAILED")
        done = self.count("3")
        self.assertNotIn("FLAKY", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 1 failed")
        self.assertEqual(done.returncode, 1)

    def test_skips_are_counted_and_listed_by_reason(self):
        self.attempt(1, "".join(
            '<testcase name="%s" classname="S" result="skipped">'
            '<skipped message="f.cc:7\n%s"/></testcase>' % case for case in (
                ("B", "no card"), ("C", "no card"), ("D", "no root"))))
        self.summary("PASSED")
        done = self.count()
        self.assertEqual(done.stdout.splitlines()[-3:], [
            "SKIPPED %s: 2 cases: f.cc:7 no card" % LABEL,
            "SKIPPED %s: S.D: f.cc:7 no root" % LABEL,
            "1 passed, 0 failed, 3 skipped"])
        self.assertEqual(done.returncode, 0)

    def test_a_target_that_did_not_run_is_a_failure(self):
        done = self.count("1")
        self.assertIn("FAILED %s: DID NOT BUILD OR RUN" % LABEL, done.stdout)
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    harness.main()
