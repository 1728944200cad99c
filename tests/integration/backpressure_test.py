"""A ps that gets more than it can apply: bounded memory, exact sums (T21)."""

import os
import re

from tests.integration import harness

FLOOD = os.path.abspath("tests/integration/push_flood")
WORKERS = 64
STEPS = 3
# 4 MiB, four parts.
ELEMENTS = 1 << 20
LIMIT_MIB = 256


class BackpressureTest(harness.TestCase):

    def flood(self, *flags):
        """Returns the ps, and the flood's (applied, retries)."""
        host = "localhost:%d" % harness.free_ports(1)[0]
        ps = self.start("ps", [harness.ps_server(), "--ps_hosts=" + host,
                               "--job_name=ps", *flags])
        ps.wait_for("listening on")
        code, output = self.run_to_end(
            "flood", [FLOOD, host, str(WORKERS), str(STEPS), str(ELEMENTS)],
            deadline_s=240)
        self.assertEqual(code, 0, output)
        found = re.search(r"applied=(\d+) retries=(\d+)", output)
        self.assertTrue(found, output)
        return ps, int(found.group(1)), int(found.group(2))

    def peak_mib(self, ps):
        with open("/proc/%d/status" % ps.pid, encoding="ascii") as file:
            return int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) / 1024

    def test_64_workers_push_into_a_bounded_ps(self):
        ps, applied, retries = self.flood("--push_budget_mb=1",
                                          "--apply_threads=3")
        self.assertEqual(applied, WORKERS * STEPS)
        self.assertGreater(retries, 0)
        print("backpressure: peak_mib=%.0f limit=%d retries=%d" % (
            self.peak_mib(ps), LIMIT_MIB, retries))
        self.assertLess(self.peak_mib(ps), LIMIT_MIB)

    def test_a_budget_below_one_mib_is_refused(self):
        for value in ("0", "-1", "9999999999999"):
            code, output = self.run_to_end("ps", [
                harness.ps_server(), "--ps_hosts=localhost:1", "--job_name=ps",
                "--push_budget_mb=" + value])
            self.assertEqual(code, 2, output)
            self.assertIn("--push_budget_mb: wanted MiB, at least 1", output)

    def test_a_number_of_apply_threads_out_of_range_is_refused(self):
        for value in ("0", "-1", "257"):
            code, output = self.run_to_end("ps", [
                harness.ps_server(), "--ps_hosts=localhost:1", "--job_name=ps",
                "--apply_threads=" + value])
            self.assertEqual(code, 2, output)
            self.assertIn("--apply_threads: wanted 1 to 256, found " + value,
                          output)


if __name__ == "__main__":
    harness.main()
