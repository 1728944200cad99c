"""worker/python/examples beside one process that has no ps tasks: two workers
get to the same accuracy, or loss, on rows that none has trained on.
"""

import os
import re
import sys

from tests.integration import harness

# Each takes some minutes on two busy cores.
DEADLINE_S = 900.0


class PythonExamplesTest(harness.TestCase):

    def start_example(self, name, *flags, **environment):
        return self.start(name, [
            sys.executable,
            os.path.abspath("worker/python/examples/%s.py" % name), *flags],
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment})

    def end_of(self, example):
        """What it has printed last."""
        self.assertEqual(example.wait(DEADLINE_S), 0, example.output)
        return float(re.findall(r"^test_\w+=(.*)$", example.output,
                                re.MULTILINE)[-1])

    def compare(self, name, *flags):
        """Returns (what one process got, what two workers got)."""
        alone = self.end_of(self.start_example(name, "--alone", *flags))
        cluster = self.write_cluster(ps=1, workers=2)
        ps = self.start_ps(cluster, 0)
        workers = [self.start_example(
            name, "--train_dir=" + self.path("run"), *flags,
            MUSTER_CLUSTER=cluster, MUSTER_TASK_INDEX=str(index))
            for index in range(2)]
        # Both have the values of the job's end.
        first, second = map(self.end_of, workers)
        self.assertEqual(first, second)
        self.assertEqual(ps.wait(), 0, ps.output)
        print("%s %s: %.4f alone, %.4f by two workers" %
              (name, " ".join(flags), alone, first))
        return alone, first

    def test_digits_in_numpy(self):
        alone, two = self.compare("digits")
        self.assertGreater(alone, 0.95)
        self.assertGreater(two, alone - 0.015)

    def test_resnet18(self):
        alone, two = self.compare("resnet18", "--width=16")
        self.assertGreater(alone, 0.95)
        self.assertGreater(two, alone - 0.015)

    def test_deepfm(self):
        alone, two = self.compare("deepfm")
        self.assertGreater(alone, 0.85)
        self.assertGreater(two, alone - 0.015)

    def test_transformer_on_the_king_james_text(self):
        alone, two = self.compare("transformer", "--width=64", "--layers=2",
                                  "--characters=500000", "--epochs=3")
        # Of log(72) in an untrained one.
        self.assertLess(alone, 2.1)
        self.assertLess(two, alone * 1.08)


if __name__ == "__main__":
    harness.main()
