"""scripts/muster sweep and ensemble on ps tasks that keep serving."""

import os
import sys

from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts"))
from hosts import certs  # noqa: E402

MUSTER = os.path.abspath("scripts/muster")


class ClusterTrialsTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        self.cluster = self.write_cluster(ps=2, workers=1)

    def start_servers(self):
        return [self.start_ps(self.cluster, i, "--keep_serving")
                for i in range(2)]

    def command(self, verb, *flags, steps=200):
        training = self.write("training.textproto",
                              harness.softmax_regression(steps))
        return [MUSTER, verb, "--training=" + training, "--no_build",
                "--bin_dir=" + os.getcwd(), "--cluster=" + self.cluster,
                "--parallel=2", "--%s_dir=%s" % (verb, self.path(verb)), *flags]

    def sweep(self, *flags, **options):
        return self.command(
            "sweep", "--param=optimizer.sgd.learning_rate=choice:0.1,0.2,0.3",
            "--sampler=grid", "--metric=test_accuracy", "--maximize",
            "--no_pictures", *flags, **options)

    def namespaces(self, *flags):
        code, output = self.run_to_end("musterctl", [
            harness.binary("worker/ctl/musterctl"), "namespace", "ls",
            "--cluster=" + self.cluster, *flags])
        self.assertEqual(code, 0, output)
        return [line.split()[0].strip("'") for line in output.splitlines()[2:]]

    def trial(self, number):
        return self.read_json("sweep/trial-%04d/trial.json" % number)

    def test_each_trial_has_a_namespace_until_it_has_ended(self):
        servers = self.start_servers()
        driver = self.start("driver", self.sweep())
        driver.wait_for(r"trial \d DONE in ")
        driver.kill()
        code, output = self.run_to_end("sweep", self.sweep())
        self.assertEqual(code, 0, output)
        self.assertIn("3 done, 0 pruned, 0 failed", output)
        # Those that the killed driver has left, too.
        self.assertEqual(self.namespaces(), [])
        spaces = set()
        for number in range(3):
            trial = self.trial(number)
            self.assertEqual((trial["state"], trial["namespace"]), ("DONE", ""))
            spaces |= {flag for flag in trial["command"]
                       if flag.startswith("--namespace=sweep-sweep-")}
            self.assertNotIn("--standalone", trial["command"])
        self.assertEqual(len(spaces), 3)

        code, output = self.run_to_end("ensemble", self.command(
            "ensemble", "--members=2", "--keep_namespaces"))
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"\| ensemble \| [01]\.\d+ ")
        self.assertEqual([name.rsplit("/", 1)[1] for name in self.namespaces()],
                         ["member-00", "member-01"])
        for server in servers:
            self.assertTrue(server.running(), server.output)

    def test_trials_have_keys(self):
        keys = "--certs_dir=" + self.path("keys")
        for verb in (["init"], ["issue", "--cluster=" + self.cluster]):
            self.assertEqual(certs.main([*verb, keys]), 0)
        for i in range(2):
            self.start_ps(self.cluster, i, "--keep_serving", keys)
        code, output = self.run_to_end("ensemble", self.command(
            "ensemble", "--members=2", keys, steps=20))
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"\| ensemble \| [01]\.\d+ ")
        self.assertEqual(self.namespaces(keys), [])

    def test_mistakes_before_the_first_trial_are_named(self):
        self.start_ps(self.cluster, 0)
        workers = self.write("workers.json", '{"worker": ["127.0.0.1:1"]}')
        for flags, words in (
                ([], "/job:ps/task:1 at "),
                (["--cluster=" + workers], "wanted ps tasks, found none"),
                (["--cluster=" + self.path("none")], "No such file")):
            code, output = self.run_to_end("sweep", self.sweep(*flags))
            self.assertEqual((code, words in output), (2, True), output)
            self.assertFalse(os.path.exists(self.path("sweep")))


if __name__ == "__main__":
    harness.main()
