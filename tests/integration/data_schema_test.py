"""A run knows its data: what is evaluated, predicted and trained on later is
read as the run read it, or refused."""

import json
import os
import struct

from tests.integration import harness, tiny_png

REGRESSION = """
model {
  name: "linear"
  input_shape: [3]
  layer { name: "out" type: "dense" attr { name: "units" i: 1 } }
  layer { name: "loss" type: "mean_squared_error" }
}
input { type: "csv" batch_size: 8 label_column: "y" }
optimizer { name: "adam" attr { name: "learning_rate" f: 0.01 } }
stop { steps: 40 }
seed: 7
"""
CLASSIFIER = """
model {
  name: "small_net"
  input_shape: [%s]
  %s
  layer { name: "flat" type: "flatten" }
  layer { name: "logits" type: "dense" attr { name: "units" i: 3 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input { type: "%s" batch_size: 6 }
optimizer { name: "momentum" attr { name: "learning_rate" f: 0.05 } }
stop { steps: 30 }
seed: 7
"""
CONV = """
  layer { name: "conv" type: "conv2d"
    attr { name: "filters" i: 4 } attr { name: "kernel" i: 3 } }
  layer { name: "norm" type: "batch_norm" }
  layer { name: "act" type: "relu" }
"""
CLASSES = ["ant", "bee", "cat"]
NORMALIZE = ('--set=input.map={type: "normalize" attr {name: "mean" s: "%s"} '
             'attr {name: "std" s: "1"}}')


def numbers(row):
    """Three columns of very different meaning, and their target."""
    a, b, c = row % 5, 10 + row % 3, -row % 7
    return {"a": a, "b": b, "c": c, "y": 2 * a - b + 0.5 * c}


def npy(shape, values, kind):
    header = "{'descr': '<%s%d', 'fortran_order': False, 'shape': (%s,), }" % (
        kind, 4 if kind == "f" else 8, ", ".join(map(str, shape)))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    code = "f" if kind == "f" else "q"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) +
            header.encode() + struct.pack("<%d%s" % (len(values), code),
                                          *values))


VALIDATION = "--set=input.validation_fraction=0.3"


class DataSchemaTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        os.makedirs(self.path("data"))
        self.folder = "--train_dir=" + self.path("train")

    def write_table(self, name, columns, rows):
        lines = [",".join(columns)]
        for row in rows:
            lines.append(",".join(str(numbers(row).get(c, 0)) for c in columns))
        self.write(os.path.join("data", name), "\n".join(lines) + "\n")

    def write_tables(self):
        self.write_table("train.csv", "abcy", range(60))
        self.write_table("test.csv", "abcy", range(60, 90))

    def write_images(self, half, names, per_class=4):
        for name in names:
            folder = self.path(os.path.join("data", half, name))
            os.makedirs(folder, exist_ok=True)
            for i in range(per_class):
                # Another third of the rows is bright.
                tiny_png.write(os.path.join(folder, "%d.png" % i), 6, 6,
                               [200 + i if y // 2 == CLASSES.index(name) else 9
                                for y in range(6) for _ in range(6)])

    def train(self, training, *flags):
        return self.train_standalone(*self.training_flags(
            training, "train", "--set=input.dir=" + self.path("data"), *flags))

    def worker(self, *arguments):
        return self.run_to_end("worker", [harness.worker(), *arguments])

    def go_on(self, *flags):
        return self.worker("--standalone", self.folder, "--compute_threads=1",
                           *flags)

    def evaluate(self, *flags):
        code, output = self.worker("evaluate", *(flags or [self.folder]),
                                   "--compute_threads=1",
                                   "--output=" + self.path("figures.json"))
        self.assertEqual(code, 0, output)
        return self.read_json("figures.json")

    def assert_refused(self, ended, code, *texts):
        self.assertEqual(ended[0], code, ended[1])
        for text in texts:
            self.assertIn(text, ended[1])

    def assert_evaluates_as_trained(self, *names):
        result = self.result("train")
        for half in ["test"] + ["validation"] * ("validation_loss" in result):
            figures = self.evaluate(self.folder, "--half=" + half)
            for name in ("loss", "examples", *names):
                name = "%s_%s" % (half, name)
                self.assertEqual(figures[name], result[name], name)

    # ---- The same data in another form

    def test_columns_in_another_order_are_those_of_the_run(self):
        self.write_tables()
        self.write_table("test.csv", "cyba", range(60, 90))
        self.train(REGRESSION)
        first = self.result("train")["test_loss"]
        # Another order yet, and one that the run does not know.
        self.write_table("test.csv", "zbyac", range(60, 90))
        self.assertEqual(self.evaluate()["test_loss"], first)
        # The file alone, of the same run.
        self.assertEqual(self.evaluate("--init_from=" + self.path(
            "train/ckpt-%012d/parameters.safetensors" % 40))["test_loss"],
                         first)
        self.write_table("train.csv", "ycba", range(60))
        code, output = self.go_on("--set=stop.steps=80")
        self.assertEqual(code, 0, output)
        parameters = self.parameter_bytes("train", 80)
        os.rename(self.path("train"), self.path("first"))
        self.write_tables()
        self.train(REGRESSION, "--set=stop.steps=80")
        self.assertEqual(parameters, self.parameter_bytes("train", 80))

    def test_a_class_that_no_longer_occurs_keeps_its_number(self):
        for half in ("train", "test"):
            self.write_images(half, CLASSES)
        self.train(CLASSIFIER % ("1, 6, 6", "", "image_folder"))
        self.assertEqual(self.result("train")["test_accuracy"], 1)
        os.rename(self.path("data"), self.path("all"))
        self.write_images("test", ["bee", "cat"])
        self.assertEqual(self.evaluate()["test_accuracy"], 1)
        predicted = self.path("predicted.csv")
        code, output = self.worker("predict", self.folder, "--values=class",
                                   "--output=" + predicted)
        self.assertEqual(code, 0, output)
        with open(predicted, encoding="utf-8") as file:
            classes = [line.split(",")[-1].strip() for line in file][1:]
        self.assertEqual(classes, ["bee"] * 4 + ["cat"] * 4)
        os.rename(self.path("data/test/bee"), self.path("data/test/wasp"))
        self.assert_refused(self.worker("evaluate", self.folder), 2, "'wasp'")

    def test_an_evaluator_before_the_first_checkpoint_reads_as_the_run(self):
        self.write_tables()
        self.write_table("test.csv", "zcyba", range(60, 90))
        cluster = self.write_cluster(ps=1, workers=1, evaluator=True)
        flags = self.training_flags(REGRESSION, "train", VALIDATION,
                                    "--set=input.dir=" + self.path("data"))
        evaluator = self.start("evaluator", [
            harness.worker(), "--cluster=" + cluster, "--job_name=evaluator",
            *flags])
        evaluator.wait_for("opened with the run's first checkpoint")
        server = self.start_ps(cluster, 0)
        worker = self.start_worker(cluster, 0, *flags)
        for process in (worker, server, evaluator):
            self.assertEqual(process.wait(), 0, process.output)
        newest, result = (self.read_json("train/evaluator.json"),
                          self.result("train"))
        self.assertEqual(newest["validation_loss"], result["validation_loss"])
        # The test half is for the end, and for the chief.
        self.assertEqual((newest.get("test_loss"), "test_loss" in result),
                         (None, True))

    # ---- The folder is enough

    def test_evaluation_by_the_folder_gives_the_trainings_own_figures(self):
        self.write_tables()
        pixels = [value / 7 for row in range(30) for value in
                  [row % 3 * 2 + (i % 4) for i in range(36)]]
        for name in ("train", "test"):
            with open(self.path("data/%s.npy" % name), "wb") as file:
                file.write(npy((30, 36), pixels, "f"))
            with open(self.path("data/%s_labels.npy" % name), "wb") as file:
                file.write(npy((30,), [row % 3 for row in range(30)], "i"))
            self.write_images(name, CLASSES)
        trainings = {
            "csv": (REGRESSION, ()),
            "csv stream": (REGRESSION, ("--set=input.stream=true",)),
            "csv validated": (REGRESSION, (VALIDATION,)),
            "npy": (CLASSIFIER % ("36", "", "npy"), (VALIDATION, "accuracy")),
            "image_folder": (CLASSIFIER % ("1, 6, 6", CONV, "image_folder"),
                             (VALIDATION, "accuracy")),
            "synthetic": (CLASSIFIER % ("1, 6, 6", CONV, "synthetic"),
                          ("--set=input.synthetic_classes=3", VALIDATION,
                           "accuracy"))}
        for name, (training, more) in trainings.items():
            with self.subTest(reader=name):
                self.train(training, *[f for f in more if f[0] == "-"])
                self.assertEqual(VALIDATION in more,
                                 "validation_loss" in self.result("train"))
                self.assert_evaluates_as_trained(
                    *[f for f in more if f[0] != "-"])
                os.rename(self.path("train"), self.path("done " + name))

    def test_a_run_goes_on_by_its_folder_alone(self):
        self.write_tables()
        self.train(REGRESSION, "--set=stop.steps=20",
                   NORMALIZE % "1")
        code, output = self.go_on(
            "--set=stop.steps=40", "--set=optimizer.learning_rate=0.1")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"optimizer\.adam\.learning_rate: 0\.01 -> 0\.1")
        self.assertNotRegex(output, r": \S+ -> .*\n.*: \S+ -> ")
        self.assertEqual(self.result("train")["global_step"], 40)
        for verb in ([], ["--standalone"]):
            command = verb or ["evaluate"]
            self.assert_refused(
                self.worker(*command, self.folder, NORMALIZE % "2"), 2,
                "input.map", "train anew")
        self.assert_evaluates_as_trained()
        self.assert_refused(self.worker("--standalone"), 2,
                            "--training is missing")
        self.assert_refused(
            self.worker("--standalone", "--train_dir=" + self.path("none")), 2,
            "--training is missing", "none/training.textproto")

    # ---- Bad input

    def test_a_schema_that_is_not_as_it_was_written_ends_it_with_3(self):
        self.write_tables()
        self.train(REGRESSION)
        with open(self.path("train/schema.textproto"),
                  encoding="utf-8") as file:
            text = file.read()
        for damaged in (text[:len(text) // 2], text.replace('"csv"', '"npy"'),
                        ""):
            self.write("train/schema.textproto", damaged)
            for ended in (self.worker("evaluate", self.folder),
                          self.go_on("--set=stop.steps=60")):
                self.assert_refused(ended, 3, "train/schema.textproto",
                                    "move it away")
        os.remove(self.path("train/schema.textproto"))
        self.assert_evaluates_as_trained()

    def test_a_training_that_is_not_as_it_was_written_ends_it_with_3(self):
        self.write_tables()
        self.train(REGRESSION)
        with open(self.path("train/training.textproto"),
                  encoding="utf-8") as file:
            text = file.read()
        self.write("train/training.textproto", text[:len(text) // 2])
        for ended in (self.worker("evaluate", self.folder), self.go_on()):
            self.assert_refused(ended, 3, "train/training.textproto",
                                "--training=FILE")
        # A person's own file stays.
        own = "# mine\n" + REGRESSION
        self.write("train/training.textproto", own)
        self.assert_refused(
            self.go_on("--training=" + self.path("training.textproto"),
                       "--set=input.dir=" + self.path("data")),
            2, "train/training.textproto", "move it away")
        with open(self.path("train/training.textproto"),
                  encoding="utf-8") as file:
            self.assertEqual(file.read(), own)


if __name__ == "__main__":
    harness.main()
