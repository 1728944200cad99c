"""libmuster.so: a program in C, by plain gcc, on a real ps task."""

import os
import re
import signal
import subprocess

from tests.integration import harness

HEADER = os.path.abspath("worker/python")
LIBRARY = harness.binary("worker/python/libmuster.so")
EXAMPLE = os.path.join(HEADER, "example.c")


class CInterfaceTest(harness.TestCase):

    def compile(self, source):
        program = self.path("program")
        subprocess.run(
            ["gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror",
             "-I" + HEADER, source, LIBRARY, "-Wl,-rpath," +
             os.path.dirname(LIBRARY), "-o", program], check=True)
        return program

    def test_example_on_a_ps_fits_the_line(self):
        program = self.compile(EXAMPLE)
        hosts = "localhost:%d" % harness.free_ports(1)[0]
        # It waits for the ps task.
        worker = self.start("program", [program, hosts])
        ps = self.start("ps", [harness.ps_server(), "--ps_hosts=" + hosts,
                               "--job_name=ps"])
        self.assertEqual(worker.wait(), 0, worker.output)
        self.assertIn("y = 2.00 x + 1.00, done", worker.output)
        self.assertIn("/job:worker/task:0", worker.output)
        self.assertEqual(ps.wait(), 0, ps.output)

    def test_a_worker_of_any_is_numbered_and_trains(self):
        with open(EXAMPLE, encoding="utf-8") as file:
            # No step without both.
            text = file.read().replace(
                "training {",
                "training { replication { sync { min_replicas: 2 } }")
        program = self.compile(self.write("both.c", text))
        hosts = "localhost:%d" % harness.free_ports(1)[0]
        any_worker = self.start("any", [program, hosts, "any"])
        any_worker.wait_for("waiting for /job:ps/task:0")
        chief = self.start("chief", [program, hosts])
        self.start("ps", [harness.ps_server(), "--ps_hosts=" + hosts,
                          "--job_name=ps"])
        self.assertEqual(chief.wait(), 0, chief.output)
        self.assertEqual(any_worker.wait(), 0, any_worker.output)
        self.assertIn("I /job:worker/task:1 this worker is /job:worker/task:1",
                      any_worker.output)
        self.assertIn("y = 2.00 x + 1.00, done", any_worker.output)

    def test_example_without_a_ps_is_no_crash(self):
        code, output = self.run_to_end(
            "program", [self.compile(EXAMPLE), "no port"])
        self.assertEqual(code, 1, output)
        self.assertIn("no port", output)

    def test_a_signal_of_the_program_is_its_own(self):
        program = self.compile(EXAMPLE)
        worker = self.start("program", [
            program, "localhost:%d" % harness.free_ports(1)[0]])
        worker.wait_for("waiting for")
        worker.send(signal.SIGTERM)
        self.assertEqual(worker.wait(), 143, worker.output)

    def test_the_library_shows_the_functions_of_the_header_alone(self):
        with open(os.path.join(HEADER, "muster.h"), encoding="utf-8") as file:
            declared = re.findall(r"^[^ /#][^;{]*?\b(muster_\w+)\(",
                                  file.read(), re.MULTILINE)
        shown = subprocess.run(
            ["nm", "-D", "--defined-only", LIBRARY], check=True,
            capture_output=True, text=True).stdout
        self.assertEqual(sorted(set(re.findall(r" [^A] (\S+)", shown))),
                         sorted(set(declared)))

    def test_the_library_has_no_backend(self):
        needed = subprocess.run(["ldd", LIBRARY], check=True,
                                capture_output=True, text=True).stdout
        self.assertNotIn("not found", needed)
        for backend in ("dnnl", "cuda", "cudnn", "gomp"):
            self.assertNotIn(backend, needed)


if __name__ == "__main__":
    harness.main()
