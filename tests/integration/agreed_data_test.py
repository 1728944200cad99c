"""Workers that were given other data than the chief."""

import json
import os
import random
import shutil

from tests.integration import harness

TRAINING = """
model {
  name: "line"
  input_shape: [2]
  layer { name: "logits" type: "dense" attr { name: "units" i: 3 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input { type: "csv" dir: "%s" batch_size: 10 label_column: "kind" }
optimizer { name: "sgd" attr { name: "learning_rate" f: 0.1 } }
replication { sync { replicas_to_aggregate: 2 min_replicas: 2 } }
stop { steps: 20 }
seed: 7
"""
CLASSES = ["cat", "dog", "horse"]
ROWS = 120


def table(columns=("x", "y", "kind"), classes=CLASSES, rows=ROWS):
    numbers = random.Random(1)
    lines = [",".join(columns)]
    for i in range(rows):
        row = {"x": "%.3f" % numbers.random(), "y": "%.3f" % numbers.random(),
               "kind": classes[i % len(classes)]}
        lines.append(",".join(row[column] for column in columns))
    return "\n".join(lines) + "\n"


class AgreedDataTest(harness.TestCase):

    def training(self, name, files):
        """A training file whose data are these."""
        shutil.rmtree(self.path(name), ignore_errors=True)
        os.mkdir(self.path(name))
        for file, text in files.items():
            self.write("%s/%s" % (name, file), text)
        return self.write(name + ".textproto", TRAINING % self.path(name))

    def start_chief(self):
        """A ps, and the chief, which waits for worker 1."""
        self.cluster = self.write_cluster(ps=1, workers=2)
        self.ps = self.start_ps(self.cluster, 0)
        self.chief = self.start_worker(
            self.cluster, 0, "--training=" + self.training(
                "chief", {"train.csv": table(), "test.csv": table(rows=30)}))
        self.chief.wait_for("waiting for /job:worker/task:1")

    def start_other(self, files, cluster=None):
        return self.start_worker(cluster or self.cluster, 1, "--training=" +
                                 self.training("other", files))

    def assert_refused(self, other, wanted):
        self.assertEqual(other.wait(), 2, other.output)
        self.assertIn(wanted, other.output)

    def larger_cluster(self):
        """The same with one worker more."""
        jobs = self.read_json("cluster.json")
        jobs["cluster"]["worker"] += ["127.0.0.1:%d" %
                                      harness.free_ports(1)[0]]
        return self.write("larger.json", json.dumps(jobs))

    def test_a_worker_with_other_data_ends_and_one_with_the_same_trains(self):
        self.start_chief()
        for data, wanted in (
                (table(classes=CLASSES[:1] + CLASSES[2:]),
                 "classes: line 2 is 'horse' here, 'dog' at"),
                (table(columns=("y", "x", "kind")),
                 "columns: line 1 is 'y number []' here, 'x number []' at"),
                (table(rows=ROWS - 1),
                 "is 'rows: 119 an epoch, shuffled by seed 7', there it is "
                 "'rows: 120 an epoch, shuffled by seed 7'; start all tasks "
                 "with one training file and the same data")):
            self.assert_refused(self.start_other({"train.csv": data}), wanted)
        self.assert_refused(
            self.start_other({"train.csv": table()}, self.larger_cluster()),
            "workers: '3' here, '2' at /job:worker/task:0; the rows are "
            "divided by that number")
        header, *rows = table().splitlines(keepends=True)
        other = self.start_other({
            "train-00000-of-00002.csv": header + "".join(rows[:50]),
            "train-00001-of-00002.csv": header + "".join(rows[50:])})
        self.assertEqual(other.wait(), 0)
        self.assertEqual(self.chief.wait(), 0)
        self.ps.wait_for("/job:worker/task:1 reads other files than "
                         "/job:worker/task:0")


if __name__ == "__main__":
    harness.main()
