"""worker/client/client_example: a user's own program on real ps tasks."""

import json
import os
import re
import signal

from tests.integration import harness

EXAMPLE = os.path.abspath("worker/client/client_example")
README = os.path.abspath("worker/client/README.md")
LINE = r"loss=[\d.]+ y = ([-\d.]+) a \+ ([-\d.]+) b \+ ([-\d.]+)"


class ClientTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        cluster = self.write_cluster(ps=2, workers=2)
        with open(cluster, encoding="utf-8") as file:
            self.hosts = ",".join(json.load(file)["cluster"]["ps"])
        self.ps = [self.start("ps %d" % i, [
            harness.ps_server(), "--ps_hosts=" + self.hosts, "--job_name=ps",
            "--task_index=%d" % i]) for i in range(2)]

    def example(self, worker):
        return self.start("worker %d" % worker,
                          [EXAMPLE, self.hosts, str(worker)])

    def test_two_programs_fit_one_line(self):
        # In any order: each waits for the ps tasks, worker 1 for worker 0.
        workers = [self.example(1), self.example(0)]
        for worker in workers:
            self.assertEqual(worker.wait(), 0, worker.output)
            found = re.search(LINE, worker.output)
            self.assertTrue(found, worker.output)
            for i in range(2):
                self.assertIn("link to /job:ps/task:%d: shared memory" % i,
                              worker.output)
            for text, value in zip(found.groups(), (2, -3, 1)):
                self.assertAlmostEqual(float(text), value, delta=0.3)
        for ps in self.ps:
            ps.send(signal.SIGTERM)
        for ps in self.ps:
            self.assertEqual(ps.wait(), 143, ps.output)

    def test_the_readme_shows_this_program(self):
        with open(README, encoding="utf-8") as file:
            text = file.read()
        with open(EXAMPLE + ".cc", encoding="utf-8") as file:
            self.assertIn(text.split("```")[1][len("cpp\n"):], file.read())
        self.assertIn("bazel-bin/worker/client/client_example "
                      "localhost:2222 0 &", text)

    def test_wrong_arguments_exit_with_2(self):
        code, output = self.run_to_end("example", [EXAMPLE])
        self.assertEqual(code, 2, output)
        self.assertIn("usage:", output)


if __name__ == "__main__":
    harness.main()
