"""A ps that gets what no worker sends: bounded memory, and others are served
meanwhile (S8, S9)."""

import os
import re

from tests.integration import harness

HOSTILE = os.path.abspath("tests/integration/hostile_peer")
MAX_GROWTH_MIB = 100
MAX_PUSH_S = 1.0


class HostilePeerTest(harness.TestCase):

    def memory_mib(self, ps, field):
        with open("/proc/%d/status" % ps.pid, encoding="ascii") as file:
            return int(re.search(field + r":\s+(\d+) kB",
                                 file.read()).group(1)) / 1024

    def harm(self, what, *numbers, ps_flags=()):
        """What the ps answered to it; the worker's pushes have all worked."""
        host = "localhost:%d" % harness.free_ports(1)[0]
        ps = self.start("ps", [harness.ps_server(), "--ps_hosts=" + host,
                               "--job_name=ps", *ps_flags])
        ps.wait_for("listening on")
        before = self.memory_mib(ps, "VmRSS")
        code, output = self.run_to_end(
            what, [HOSTILE, host, what, *map(str, numbers)], deadline_s=120)
        self.assertEqual(code, 0, output)
        growth = self.memory_mib(ps, "VmHWM") - before
        print("%s %d: growth_mib=%.0f %s" % (
            what, numbers[0], growth, " ".join(output.split("\n"))))
        self.assertLess(growth, MAX_GROWTH_MIB)
        self.expect_within(
            "99 % of the pushes meanwhile",
            float(re.search(r"p99_ms=([\d.]+)", output).group(1)) / 1e3,
            MAX_PUSH_S)
        return re.search("refused=(.*)", output).group(1)

    def test_a_message_of_256_mib_is_refused(self):
        self.assertRegex(self.harm("plain", 256), "^RESOURCE_EXHAUSTED: ")

    def test_a_compressed_message_of_512_mib_is_refused(self):
        self.assertRegex(self.harm("gzip", 512), "^UNIMPLEMENTED: ")

    def test_2000_idle_connections_stop_nobody(self):
        seconds = 60 if harness.SOAK else 15
        self.assertEqual(self.harm("idle", 2000, seconds), "OK")

    def test_tasks_that_nobody_lists_lock_no_worker_out(self):
        self.assertEqual(self.harm(
            "strangers", 4200,
            ps_flags=["--worker_hosts=localhost:1,localhost:2"]), "OK")


if __name__ == "__main__":
    harness.main()
