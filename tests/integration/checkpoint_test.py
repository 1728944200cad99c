"""Checkpoints of real processes: given weights, inspection, damage, and
folders that cannot be used (contracts: P3, P5, P10; T8, T11)."""

import os
import re
import shlex
import signal
import struct
import subprocess

from tests.integration import harness
from tests.integration import safetensors_file

TRAINING = """
model {
  name: "tiny"
  input_shape: [64]
  layer { name: "hidden" type: "dense" attr { name: "units" i: 7 } }
  layer { name: "relu" type: "relu" }
  layer { name: "logits" type: "dense" attr { name: "units" i: 3 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input {
  type: "synthetic" batch_size: 8
  synthetic_examples: 512 synthetic_test_examples: 64 synthetic_classes: 3
}
optimizer { name: "adam" attr { name: "learning_rate" f: 0.01 } }
stop { steps: 20 }
seed: 5
"""
ENDLESS = "--set=stop.steps=100000000"

# The parameters of the model above: name -> shape.
PARAMETERS = {"hidden/bias": [7], "hidden/weights": [7, 64],
              "logits/bias": [3], "logits/weights": [3, 7]}


def count(shape):
    product = 1
    for dim in shape:
        product *= dim
    return product


def example_values(shape, salt):
    """Values that every float format here holds exactly."""
    return [((i * 5 + salt) % 64 - 32) / 64 for i in range(count(shape))]


def example_tensors():
    return {name: ("F32", shape,
                   safetensors_file.floats(example_values(shape, salt)))
            for salt, (name, shape) in enumerate(PARAMETERS.items())}


def crc32c(data):
    """Castagnoli's, bit by bit."""
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


class TestCase(harness.TestCase):

    def flags(self, *flags, training=TRAINING, train_dir="train"):
        path = self.write("training.textproto", training)
        return ["--training=" + path, "--train_dir=" + self.path(train_dir),
                "--compute_threads=1", *flags]

    def train(self, *flags, **kinds):
        """Trains alone; returns (exit code, output)."""
        return self.run_to_end("worker", [harness.worker(), "--standalone",
                                          *self.flags(*flags, **kinds)])

    def assert_trains(self, *flags, **kinds):
        code, output = self.train(*flags, **kinds)
        self.assertEqual(code, 0, output)
        return output

    def cluster(self, ps, *flags, **kinds):
        cluster = self.write_cluster(ps=ps, workers=1)
        servers = [self.start_ps(cluster, i) for i in range(ps)]
        worker = self.start_worker(cluster, 0, *self.flags(*flags, **kinds))
        for process in [worker] + servers:
            self.assertEqual(process.wait(), 0, process.output)
        return worker.output

    def checkpoints(self, train_dir="train"):
        return sorted(name for name in os.listdir(self.path(train_dir))
                      if "ckpt-" in name)

    def file(self, step, name="parameters.safetensors", train_dir="train"):
        return os.path.join(self.path(train_dir), "ckpt-%012d" % step, name)

    def tensors(self, step, train_dir="train"):
        return safetensors_file.read(self.file(step, train_dir=train_dir))

    def read(self, *place, **kinds):
        with open(self.file(*place, **kinds), "rb") as file:
            return file.read()

    def replace(self, step, name, contents):
        with open(self.file(step, name), "wb") as file:
            file.write(contents)


class InitFromTest(TestCase):

    def init_file(self, tensors):
        path = self.path("init.safetensors")
        safetensors_file.write(path, tensors)
        return "--init_from=" + path

    def assert_refused(self, *says, flags=()):
        code, output = self.train(*flags)
        self.assertEqual(code, 2, output)
        for text in says:
            self.assertIn(text, output)
        # Nothing was started.
        self.assertEqual(self.checkpoints(), [])

    def test_training_starts_from_the_given_values(self):
        wanted = example_tensors()
        output = self.assert_trains(self.init_file(wanted))
        self.assertIn("4 of them from", output)
        self.assertEqual(self.tensors(0), wanted)
        self.assertNotEqual(self.tensors(20), wanted)

    def test_every_float_dtype_is_converted(self):
        formats = {"F16": "e", "F64": "d"}
        for dtype in ("F16", "F64", "BF16"):
            with self.subTest(dtype=dtype):
                tensors = {}
                for salt, (name, shape) in enumerate(PARAMETERS.items()):
                    values = example_values(shape, salt)
                    if dtype == "BF16":  # The upper half of a float32.
                        data = b"".join(struct.pack("<f", value)[2:]
                                        for value in values)
                    else:
                        data = struct.pack("<%d%s" % (len(values),
                                                      formats[dtype]), *values)
                    tensors[name] = (dtype, shape, data)
                self.assert_trains(self.init_file(tensors), train_dir=dtype)
                self.assertEqual(self.tensors(0, train_dir=dtype),
                                 example_tensors())

    def test_names_are_mapped(self):
        renamed = {}
        for name, tensor in example_tensors().items():
            layer, kind = name.split("/")
            renamed["net.%s.%s" % (layer, {"weights": "weight"}.get(
                kind, kind))] = tensor
        renamed["net.steps"] = ("I64", [1], bytes(8))
        self.assert_trains(self.init_file(renamed),
                           r"--init_from_map=net\.(.*)\.weight=\1/weights",
                           r"--init_from_map=net\.(.*)\.bias=\1/bias",
                           r"--init_from_map=net\.steps=")
        self.assertEqual(self.tensors(0), example_tensors())

    def test_a_partial_file_has_to_be_asked_for(self):
        tensors = example_tensors()
        del tensors["logits/weights"]
        tensors["extra"] = ("F32", [1], bytes(4))
        init = self.init_file(tensors)
        self.assert_refused("'logits/weights'", "'extra'",
                            "--init_from_partial", flags=[init])
        output = self.assert_trains(init, "--init_from_partial")
        self.assertIn("by seed: logits/weights", output)
        self.assertIn("passed over: 'extra'", output)
        self.assert_trains(train_dir="seeded")
        found = self.tensors(0)
        self.assertEqual(found["hidden/bias"], tensors["hidden/bias"])
        self.assertEqual(found["logits/weights"],
                         self.tensors(0, train_dir="seeded")["logits/weights"])

    def test_a_run_begins_with_the_newest_checkpoint_of_another(self):
        self.assert_trains(train_dir="teacher")
        teacher = "--init_from=" + self.path("teacher")
        output = self.assert_trains(teacher)
        self.assertIn("takes %s/ckpt-%012d" % (
            os.path.realpath(self.path("teacher")), 20), output)
        self.assertEqual(self.tensors(0), self.tensors(20, "teacher"))
        # The run keeps its training.
        code, figures = self.run_to_end("evaluate", [
            harness.worker(), "evaluate", teacher])
        self.assertEqual(code, 0, figures)

    def test_a_head_of_another_size_begins_anew_as_the_message_says(self):
        self.assert_trains(train_dir="teacher")
        tensors = self.tensors(20, "teacher")
        tensors["logits/bias"] = ("F32", [9], bytes(36))
        init = self.init_file(tensors)
        code, output = self.train(init)
        self.assertEqual(code, 2, output)
        flags = re.findall(r"--init_from_map='[^']*'", output)
        self.assert_trains(init, *shlex.split(" ".join(flags)))
        self.assertEqual(self.tensors(0)["hidden/bias"],
                         tensors["hidden/bias"])

    def test_a_checkpoint_in_train_dir_wins(self):
        self.assert_trains()
        # Even over a file that is gone.
        output = self.assert_trains("--init_from=" + self.path("gone"),
                                    "--set=stop.steps=25")
        self.assertEqual(len(re.findall(r"--init_from=\S+ is not used: "
                                        r"train_dir \S+ has a checkpoint of "
                                        r"step 20", output)), 1, output)
        self.assertIn("restored ", output)

    def test_a_model_on_the_ps_tasks_wins(self):
        cluster = self.write_cluster(ps=1, workers=1)
        self.start_ps(cluster, 0)
        flags = [self.flags()[0], self.init_file(example_tensors()), ENDLESS,
                 "--compute_threads=1", "--progress_every=0.1"]
        chief = self.start_worker(cluster, 0, *flags)
        chief.wait_for("4 of them from")
        chief.wait_for(r" step=\d+ ")
        chief.kill()
        chief = self.start_worker(cluster, 0, *flags)
        chief.wait_for("--init_from=.* is not used: the ps tasks hold a model")
        chief.wait_for(r" step=\d+ ")
        chief.send(signal.SIGTERM)
        self.assertEqual(chief.wait(), 128 + signal.SIGTERM, chief.output)

    def test_wrong_shapes_and_dtypes_name_the_tensor(self):
        for entry, found in ((("F32", [3], bytes(12)), "[3] of F32"),
                             (("I32", [7], bytes(28)), "[7] of I32"),
                             (("BOOL", [7], bytes(7)), "[7] of BOOL")):
            tensors = dict(example_tensors(), **{"hidden/bias": entry})
            self.assert_refused("'hidden/bias'", "shape [7] of F32", found,
                                flags=[self.init_file(tensors)])

    def test_hostile_files_are_refused(self):
        good = example_tensors()
        self.init_file(good)
        with open(self.path("init.safetensors"), "rb") as file:
            whole = file.read()
        files = {
            "empty": b"",
            "no header": bytes(8),
            "a header of 2^64 bytes": b"\xff" * 8 + b"{}",
            "a header longer than the file": struct.pack("<Q", 1000) + b"{}",
            "a header of brackets": struct.pack("<Q", 5000) + b"[" * 5000,
            "cut short": whole[:-1],
            "a byte too much": whole + b"x",
            "sizes that overflow": whole.replace(
                b"[7, 64]", b"[4294967296,4294967296,4294967296]"),
            "not finite": whole[:-4] + struct.pack("<f", float("nan")),
        }
        for what, contents in files.items():
            with self.subTest(what=what):
                with open(self.path("init.safetensors"), "wb") as file:
                    file.write(contents)
                self.assert_refused(
                    "--init_from=", "init.safetensors",
                    flags=["--init_from=" + self.path("init.safetensors")])
        self.assert_refused("--init_from=", "nowhere",
                            flags=["--init_from=" + self.path("nowhere")])
        self.assert_refused("--init_from=",
                            flags=["--init_from=" + self.path("")])

    def test_flags_that_would_do_nothing_are_refused(self):
        for flag in ("--init_from_partial", "--init_from_map=a=b"):
            code, output = self.train(flag)
            self.assertEqual(code, 2, output)
        self.assert_refused("'a'", "PATTERN=REPLACEMENT", flags=[
            self.init_file(example_tensors()), "--init_from_map=a"])


class InspectTest(TestCase):

    def inspect(self, path, verb="ls", *other):
        return self.run_to_end("inspect", [
            harness.musterctl(), "checkpoint", verb, path, *other])

    def test_lists_and_verifies(self):
        self.assert_trains("--set=checkpoint.every_steps=10")
        code, output = self.inspect(self.path("train"))
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"ckpt-0{12}  whole  step=0 .*saved=20\d\d-")
        self.assertIn("step=20", output)
        code, output = self.inspect(os.path.dirname(self.file(20)))
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"hidden/weights +float32 +1792 bytes  "
                                 r"crc32c=[0-9a-f]{8}  \[7, 64\]")
        self.assertIn("hidden/weights/m ", output)
        self.assertIn("rows done=160: all before 160 ", output)
        self.assertIn("/job:worker/task:0 steps=20 examples=160", output)
        damaged = bytearray(self.read(20))
        damaged[-1] ^= 1
        self.replace(20, "parameters.safetensors", damaged)
        code, output = self.inspect(self.path("train"))
        self.assertEqual(code, 3, output)
        self.assertRegex(output, r"ckpt-0{10}20  NOT USABLE .*is damaged")
        self.assertRegex(output, r"ckpt-0{12}  whole")

    def test_compares_two(self):
        self.assert_trains()
        self.assert_trains(train_dir="again")
        code, output = self.inspect(self.path("train"),
                                    "diff", self.path("again"))
        self.assertEqual(code, 0, output)
        self.assertIn("0 of 16 tensors differ", output)
        self.assert_trains("--set=stop.steps=21", train_dir="again")
        code, output = self.inspect(self.path("train"),
                                    "diff", self.path("again"))
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"hidden/weights: \d+ of 448 elements differ,"
                                 r" the first is \d+; largest difference 0\.")

    def test_exports_what_init_from_imports(self):
        self.assert_trains()
        exported = self.path("w.safetensors")
        code, output = self.inspect(self.path("train"),
                                    "export", exported)
        self.assertEqual(code, 0, output)
        with open(exported, "rb") as file:
            self.assertEqual(file.read(), self.read(20))
        code, output = self.inspect(self.path("train"),
                                    "export", exported)
        self.assertEqual(code, 2, output)
        self.assert_trains("--init_from=" + exported, train_dir="again")
        self.assertEqual(self.tensors(0, train_dir="again"), self.tensors(20))

    def test_other_paths_are_refused(self):
        for path in (self.path("nowhere"), self.dir,
                     self.write("file", "text")):
            code, output = self.inspect(path)
            self.assertEqual(code, 2, output)
            self.assertIn(path, output)


class ResumeTest(TestCase):

    def test_any_number_of_ps_and_any_placement_gives_the_same_bits(self):
        # hidden/weights has four blocks.
        large = "--set=model.hidden.units=4000"
        self.assert_trains(large, "--set=stop.steps=40", train_dir="whole")
        self.cluster(1, large, "--set=stop.steps=10")
        output = self.cluster(3, large, "--set=stop.steps=20",
                              "--set=replication.async.pull=IN_PLACE")
        self.assertRegex(output, r"hidden/weights .*/job:ps/task:2 \[196608, ")
        self.assertNotIn("IN_PLACE is not possible", output)
        self.cluster(2, large, "--set=placement.strategy=greedy",
                     "--set=placement.partition.fixed.parts=4",
                     "--set=stop.steps=30")
        self.assert_trains(large, "--set=stop.steps=40")
        for name in ("parameters.safetensors", "slots.safetensors"):
            self.assertEqual(self.read(40, name),
                             self.read(40, name, train_dir="whole"), name)

    def test_a_damaged_newest_one_is_passed_over_loudly(self):
        # A save that is due while another one is written would be of a later
        # step.
        self.assert_trains("--set=stop.steps=10")
        self.assert_trains()
        for name in ("parameters.safetensors", "slots.safetensors",
                     "manifest.textproto"):
            with self.subTest(file=name):
                whole = self.read(20, name)
                self.replace(20, name, whole[:len(whole) // 2])
                output = self.assert_trains("--set=stop.steps=20")
                self.assertRegex(output,
                                 r"(?m) E .*ckpt-0{10}20' is not usable, "
                                 r"trying the one before it: .*" + name)
                self.assertRegex(output, r"restored .*ckpt-0{10}10")
                # Trained again, it was written anew.
                self.assertEqual(self.read(20, name)[:100], whole[:100])

    def test_no_usable_checkpoint_ends_it_with_3(self):
        self.assert_trains()
        before = self.checkpoints()
        for step in (0, 20):
            self.replace(step, "parameters.safetensors", b"short")
        code, output = self.train("--set=stop.steps=30")
        self.assertEqual(code, 3, output)
        for step in before:
            self.assertIn(step, output)
        self.assertEqual(self.checkpoints(), before)

    def test_a_newer_format_ends_it_with_3(self):
        self.assert_trains()
        text = self.read(20, "manifest.textproto")
        text = text[:text.rindex(b"# crc32c")].replace(
            b"format_version: 7",
            b"format_version: 9\ninvented_later { since: OF_LATER }")
        text += b"# crc32c of the text above: %08x\n" % crc32c(text)
        self.replace(20, "manifest.textproto", text)
        code, output = self.train("--set=stop.steps=30")
        self.assertEqual(code, 3, output)
        self.assertRegex(output, r"(?m) E .*format version 9 .*reads up to 8")
        self.assertEqual(self.read(20, "manifest.textproto"), text)

    def test_another_model_ends_it_with_3_and_changes_nothing(self):
        self.assert_trains()
        before = self.read(20)
        code, output = self.train(
            "--set=stop.steps=30",
            training=TRAINING.replace("i: 7", "i: 9"))
        self.assertEqual(code, 3, output)
        self.assertRegex(output, r"(?m) E .*'hidden/weights': the model has "
                                 r"\[9, 64\].* checkpoint \[7, 64\]")
        self.assertEqual(self.checkpoints(), ["ckpt-%012d" % 0,
                                              "ckpt-%012d" % 20])
        self.assertEqual(self.read(20), before)


class CountTest(TestCase):

    def updates(self, name):
        """Of each tensor, as its slot t counts them, over all restores."""
        slots = safetensors_file.read(os.path.join(
            self.path("train"), name, "slots.safetensors"))
        return {tensor: set(struct.unpack("<%dq" % (len(data) // 8), data))
                for tensor, (_, _, data) in slots.items()
                if tensor.endswith("/t")}

    def test_an_asynchronous_manifest_counts_the_updates_that_it_holds(self):
        cluster = self.write_cluster(ps=1, workers=3)
        flags = self.flags("--set=stop.steps=6000",
                           "--set=checkpoint.every_steps=50",
                           "--set=checkpoint.keep=1000")
        ps = self.start_ps(cluster, 0)
        workers = [self.start_worker(cluster, i, *flags) for i in range(3)]
        # The initial one, and two of the training: a slow disk has few.
        for _ in range(3):
            workers[0].wait_for(r"saved \S+")
        ps.kill()
        again = self.start_ps(cluster, 0)
        for process in workers + [again]:
            self.assertEqual(process.wait(), 0, process.output)
        names = self.checkpoints()
        self.assertGreater(len(names), 3)
        for name in names:
            with self.subTest(name=name):
                updates = self.updates(name)
                self.assertEqual(len(updates), len(PARAMETERS))
                for tensor, count in updates.items():
                    self.assertEqual(count, {int(name[-12:])}, tensor)


class TrainDirTest(TestCase):

    def mount(self, options):
        os.makedirs(self.path("train"))
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs",
             self.path("train")], check=False, capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest("no right to mount: " + mounted.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", self.path("train")],
                        check=False)

    def assert_refused(self, *says):
        code, output = self.train()
        self.assertEqual(code, 2, output)
        for text in says:
            self.assertIn(text, output)

    def test_a_file_is_no_train_dir(self):
        path = self.write("train", "mine")
        self.assert_refused("train_dir '%s'" % path, "is a file")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")

    def test_a_folder_that_cannot_be_written_is_refused(self):
        if os.geteuid() == 0:  # Who may write everywhere but here.
            self.mount("ro")
        else:
            os.makedirs(self.path("train"), mode=0o500)
        self.assert_refused("train_dir '%s'" % self.path("train"),
                            "choose another --train_dir")

    def test_what_a_dead_chief_left_and_may_not_be_removed_is_refused(self):
        left = os.path.join(self.path("train"), ".tmp-ckpt-%012d" % 5)
        os.makedirs(left)
        with open(os.path.join(left, "manifest.textproto"), "wb"):
            pass
        os.chmod(left, 0)
        self.addCleanup(os.chmod, left, 0o700)
        # Root, too, without its right to everything.
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search",
                   "--"] if os.geteuid() == 0 else []
        code, output = self.run_to_end("worker", [
            *command, harness.worker(), "--standalone", *self.flags()])
        # Configuration, and no matter of an insecure network (4).
        self.assertEqual(code, 2, output)
        self.assertIn(left, output)
        self.assertIn("Permission denied", output)

    def test_a_second_chief_is_refused_naming_the_first(self):
        first = self.start("first", [harness.worker(), "--standalone",
                                     *self.flags(ENDLESS)])
        first.wait_for("saved")
        self.assert_refused("process %d" % first.pid,
                            "train_dir '%s'" % self.path("train"))
        self.assertTrue(first.running())

    def test_training_outlives_a_full_disk_and_saves_when_there_is_room(self):
        self.mount("size=128k")
        filler = os.path.join(self.path("train"), "filler")
        with open(filler, "wb") as file:
            file.write(bytes(88 << 10))
        worker = self.start("worker", [
            harness.worker(), "--standalone", *self.flags(
                ENDLESS, "--set=checkpoint.every_seconds=0.2",
                "--set=summary.every_steps=0")])
        worker.wait_for("saved .*ckpt-000000000000")
        worker.wait_for(r"not saved, training goes on: .*No space left")
        self.assertIn("ckpt-000000000000", self.checkpoints())
        os.remove(filler)
        step = int(worker.wait_for(r"saved .*ckpt-(\d+)")[1])
        self.assertGreater(step, 0)
        worker.send(signal.SIGTERM)
        self.assertEqual(worker.wait(), 128 + signal.SIGTERM, worker.output)
        self.assertEqual([name for name in self.checkpoints()
                          if name.startswith(".")], [])


if __name__ == "__main__":
    harness.main()
