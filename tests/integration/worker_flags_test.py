"""What worker says to good and bad command lines, training files and data."""

import gzip
import json
import os
import re
import signal
import socket
import struct

from tests.integration import harness

# A file that trains in a moment; each test breaks one thing of it.
TRAINING = """
model {
  name: "tiny"
  input_shape: [1, 2, 3]
  layer { name: "flat" type: "flatten" }
  layer { name: "logits" type: "dense" attr { name: "units" i: 3 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input {
  type: "synthetic" batch_size: 4
  synthetic_examples: 64 synthetic_test_examples: 16 synthetic_classes: 3
}
optimizer { name: "sgd" attr { name: "learning_rate" f: 0.1 } }
stop { steps: 4 }
seed: 1
"""

# Of a training.
MOST_FLAGS = 34
IMAGES = struct.pack(">IIII", 2051, 8, 2, 3) + bytes(8 * 6)
LABELS = struct.pack(">II", 2049, 8) + bytes(8)


class WorkerFlagsTest(harness.TestCase):

    def run_worker(self, *flags, env=None):
        clean = {key: value for key, value in os.environ.items()
                 if key != "TF_CONFIG"}
        clean.update(env or {})
        return self.run_to_end("worker", [harness.worker(), *flags], env=clean)

    def standalone(self, *flags, training=TRAINING):
        path = self.write("training.textproto", training)
        return self.run_worker("--standalone", "--training=" + path,
                               "--train_dir=" + self.path("train"), *flags)

    def assert_refused(self, result, *says):
        code, output = result
        self.assertEqual(code, 2, output)
        for text in says:
            self.assertIn(text, output)

    def idx_training(self, **files):
        """Writes a data folder, some files replaced; returns the flags."""
        names = {"train-images-idx3-ubyte": IMAGES,
                 "train-labels-idx1-ubyte": LABELS,
                 "t10k-images-idx3-ubyte": IMAGES,
                 "t10k-labels-idx1-ubyte": LABELS}
        names.update({name.replace("_", "-"): content
                      for name, content in files.items()})
        folder = self.path("data")
        os.makedirs(folder)
        for name, content in names.items():
            if content is not None:
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(content)
        return ["--set=input.type=idx", "--set=input.dir=" + folder]

    # ---- Flags

    def test_a_path_that_means_something_else_makes_no_folder(self):
        for flag in ("--train_dir=", "--init_from=", "--training=",
                     "--set=input.dir="):
            self.assert_refused(self.standalone(flag + "s3://bucket/run"),
                                "s3://bucket/run", "mount it")
        self.assert_refused(self.standalone("--train_dir=~/run"), "~/run")
        self.assertFalse(os.path.exists("s3:"))
        self.assertFalse(os.path.exists("~"))

    def test_help_lists_flags_and_exits_with_0(self):
        code, output = self.run_worker("--help")
        self.assertEqual(code, 0)
        for flag in ("--cluster", "--task_index", "--training", "--train_dir",
                     "--set", "--standalone", "--device", "--devices",
                     "--allow_soft_placement", "--log_device_placement",
                     "--gpu_memory_fraction", "--gpu_memory_limit_mb",
                     "--gpu_virtual_devices", "--gpu_library_path",
                     "--compute_threads", "--max_wait",
                     "--worker_timeout", "--version", "--device_memory_limit_mb",
                     "--init_from", "--read_from", "--init_from_map",
                     "--init_from_partial", "--profile_steps", "--log_level"):
            self.assertRegex(output, r"(?m)^  %s( |$)" % flag)
        self.assertLessEqual(len(re.findall(r"(?m)^  --", output)),
                             MOST_FLAGS + len(("flagfile", "help", "version")))

    def test_a_verb_has_help_and_flags_of_its_own(self):
        for verb, flag, other in (("evaluate", "output", "cluster"),
                                  ("predict", "values", "task_index"),
                                  ("devices", "gpu_memory_fraction", "set"),
                                  ("pipeline", "num_workers", "train_dir")):
            code, output = self.run_worker(verb, "--help")
            self.assertEqual(code, 0, output)
            self.assertRegex(output, r"(?m)^  --%s( |$)" % flag)
            self.assert_refused(self.run_worker(verb, "--%s=x" % other),
                                "worker %s: unknown flag --%s" % (verb, other))
        self.assert_refused(self.run_worker("--output=x"),
                            "unknown flag --output")
        self.assert_refused(self.run_worker("evalute"), "no verb 'evalute'",
                            "did you mean evaluate?")

    def test_a_trained_model_is_used_by_its_folder_alone(self):
        code, output = self.standalone()
        self.assertEqual(code, 0, output)
        run = "--train_dir=" + self.path("train")
        figures = self.path("figures.json")
        code, output = self.run_worker("evaluate", run, "--output=" + figures)
        self.assertEqual(code, 0, output)
        with open(figures, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["test_accuracy"],
                             self.result("train")["test_accuracy"])
        self.assert_refused(self.run_worker("evaluate"), "--train_dir=DIR")
        self.assert_refused(
            self.run_worker("predict", "--train_dir=" + self.path("nowhere")),
            "nowhere/training.textproto", "nor --training=FILE")
        self.assert_refused(self.run_worker("predict", run), "--output=FILE")
        self.assert_refused(self.run_worker("evaluate", run, "--half=training"),
                            "--half: wanted test or validation")
        self.assert_refused(
            self.run_worker("evaluate", run, "--half=validation"),
            "--set=input.validation_fraction=0.1")
        for output in (self.dir, self.path("none/figures.json")):
            self.assert_refused(
                self.run_worker("evaluate", run, "--output=" + output),
                "--output: ", output)
        self.assert_refused(
            self.run_worker("evaluate", run, "--init_from_partial"),
            "--init_from_partial")

    def test_profiled_steps_are_a_count_or_a_range(self):
        for text in ("0", "9-3", "0-3", "a", "3-", "1-2-3"):
            self.assert_refused(self.standalone("--profile_steps=" + text),
                                "FIRST-LAST", "found '%s'" % text)
        code, output = self.standalone("--profile_steps=2-3")
        self.assertEqual(code, 0, output)
        self.assertTrue(os.path.exists(self.path("train/profile-worker-0.json")))

    def test_version_exits_with_0(self):
        code, output = self.run_worker("--version")
        self.assertEqual(code, 0)
        self.assertRegex(output, r"^muster \d+\.\d+\.\d+ \(protocol \d+\)")

    def test_devices_has_a_cpu(self):
        code, output = self.run_worker("devices")
        self.assertEqual(code, 0)
        self.assertRegex(output, r"(?m)^  cpu:0 to cpu:\d+: ")
        # Without CUDA, without a card, or with one.
        self.assertRegex(output,
                         r"(?m)^cuda\n  (none: .*without CUDA|cuda:0: )")

    def test_gpu_flags_out_of_range(self):
        for flag in ("--gpu_memory_fraction=0", "--gpu_memory_fraction=1.5",
                     "--gpu_memory_limit_mb=-1", "--gpu_virtual_devices=0"):
            self.assert_refused(self.standalone(flag), flag.split("=")[0])
            self.assert_refused(self.run_worker("devices", flag),
                                flag.split("=")[0])

    def test_gpu_flags_are_refused_by_a_program_without_cuda(self):
        _, devices = self.run_worker("devices")
        if "built without CUDA" not in devices:
            self.skipTest("it was built with CUDA")
        for flag in ("--gpu_memory_fraction=0.5", "--gpu_memory_limit_mb=9",
                     "--gpu_virtual_devices=2", "--gpu_library_path=/lib"):
            self.assert_refused(self.run_worker("devices", flag),
                                flag.split("=")[0] + ": ", "without CUDA")
        self.assert_refused(self.standalone("--gpu_virtual_devices=2"),
                            "--gpu_virtual_devices: ", "without CUDA")

    def test_numbers_and_times_that_make_no_sense_are_refused(self):
        for flag in ("--compute_threads=1000000", "--max_wait=0",
                     "--max_wait=-5", "--worker_timeout=0",
                     "--progress_every=nan", "--progress_every=-1s"):
            self.assert_refused(self.standalone(flag), *flag.split("="))

    def test_too_little_room_for_threads_is_said(self):
        path = self.write("training.textproto", TRAINING)
        # 2 MiB of address space for each thread.
        code, output = self.run_to_end("worker", [
            "sh", "-c", 'ulimit -v 600000; exec "$0" "$@"', harness.worker(),
            "--standalone", "--training=" + path, "--compute_threads=500"])
        self.assertEqual(code, 2, output)
        self.assertRegex(output, r"starting threads: wanted 516, could start "
                         r"\d+ .*ulimit -v")

    def test_standalone_names_no_ps_task(self):
        code, output = self.standalone()
        self.assertEqual(code, 0, output)
        self.assertIn("this process holds ", output)
        self.assertNotIn("/job:ps", output)

    def test_the_first_line_says_what_decides_on_the_threads(self):
        path = self.write("training.textproto", TRAINING)
        for variables, words in (
                ({"OMP_NUM_THREADS": "1,8"},
                 "compute_threads=1 (OMP_NUM_THREADS=1)"),
                ({"OMP_NUM_THREADS": "many", "SLURM_CPUS_PER_TASK": "1"},
                 "OMP_NUM_THREADS=many: wanted a number of threads")):
            code, output = self.run_to_end("worker", [
                harness.worker(), "--standalone", "--training=" + path],
                env=dict(os.environ, **variables))
            self.assertEqual(code, 0, output)
            self.assertIn(words, output)

    def test_soft_placement_takes_the_cpu_in_one_line(self):
        flags = ["--device=cuda:63"]
        self.assert_refused(self.standalone(*flags), "--device=cuda:63: ")
        code, output = self.standalone("--allow_soft_placement", *flags)
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"--device=cuda:63: .*; cpu:0 is used")

    def test_log_device_placement_prints_what_computes(self):
        code, output = self.standalone("--log_device_placement",
                                       "--device=cpu:1")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"logits +cpu:1 +forward +oneDNN \S+ ")
        self.assertRegex(output, r"logits +cpu:1 +backward weights +oneDNN ")

    def test_a_precision_that_the_device_lacks_is_refused(self):
        self.assert_refused(
            self.standalone("--device=cpu", "--set=compute.bf16=true"),
            "compute.bf16", "backend 'cpu'")

    def test_misspelt_flag_gets_the_nearest_one(self):
        self.assert_refused(self.run_worker("--trainign=x"), "--trainign",
                            "--training?")

    def test_unknown_device(self):
        self.assert_refused(self.standalone("--device=tpu"), "tpu")

    def test_a_device_that_does_not_exist_is_refused_with_those_that_do(self):
        for flag in ("--device=cpu:1000", "--devices=cpu:0,cpu:1000"):
            self.assert_refused(self.standalone(flag),
                                "there is no device 'cpu:1000'",
                                "there are cpu:0 to cpu:")
        self.assert_refused(self.standalone("--devices=1000"),
                            "--devices=1000: backend 'cpu' has")
        self.assert_refused(self.standalone("--devices=cpu:0,cpu:0"), "twice")

    def test_a_batch_that_cannot_be_divided_is_refused(self):
        self.assert_refused(
            self.standalone("--devices=2", "--set=input.batch_size=0",
                            "--set=input.global_batch_size=7"),
            "input.global_batch_size: 7 rows", "1 worker(s) * 2 tower(s)")
        self.assert_refused(
            self.standalone("--set=input.global_batch_size=8"),
            "input.batch_size (4", "input.global_batch_size (8")

    def test_trains_on_two_devices(self):
        code, output = self.standalone("--devices=cpu:0,cpu:1")
        self.assertEqual(code, 0, output)
        self.assertIn("2 towers on cpu:0, cpu:1", output)
        result = self.result("train")
        self.assertEqual(result["devices"], ["cpu:0", "cpu:1"])
        self.assertEqual(result["examples"], 4 * 2 * 4)

    def test_cuda_is_refused_where_it_cannot_be_used(self):
        _, devices = self.run_worker("devices")
        if re.search(r"(?m)^  cuda:0: (?!unusable)(?!.*; unusable)", devices):
            self.skipTest("there is a card")
        for device in ("cuda", "cuda:0"):
            self.assert_refused(self.standalone("--device=" + device),
                                "--device=%s: " % device,
                                "--allow_soft_placement")

    def test_one_of_a_launchers_processes_trains_alone_only_when_told_to(self):
        path = self.write("training.textproto", TRAINING)
        for variable in ("SLURM_STEP_NUM_TASKS", "WORLD_SIZE"):
            self.assert_refused(
                self.run_worker("--training=" + path, env={variable: "3"}),
                variable + "=3", "--standalone")
        code, output = self.run_worker("--standalone", "--training=" + path,
                                       env={"WORLD_SIZE": "3"})
        self.assertEqual(code, 0, output)

    def test_training_file_is_required(self):
        self.assert_refused(self.run_worker("--standalone"), "--training")

    def test_standalone_and_cluster_contradict(self):
        self.assert_refused(
            self.standalone("--cluster=" + self.write_cluster()),
            "--standalone", "--cluster")

    def test_task_index_out_of_range(self):
        path = self.write("training.textproto", TRAINING)
        self.assert_refused(
            self.run_worker("--cluster=" + self.write_cluster(),
                            "--task_index=1", "--training=" + path,
                            "--train_dir=" + self.path("train")),
            "/job:worker/task:1")

    def test_unknown_job_name(self):
        self.assert_refused(
            self.run_worker("--cluster=" + self.write_cluster(),
                            "--job_name=wroker"), "'wroker'", "'worker'")

    # ---- The training file

    def test_a_good_file_trains(self):
        code, output = self.standalone()
        self.assertEqual(code, 0, output)
        result = self.result("train")
        self.assertEqual(result["global_step"], 4)

    def test_missing_training_file(self):
        path = self.path("none.textproto")
        self.assert_refused(
            self.run_worker("--standalone", "--training=" + path,
                            "--train_dir=" + self.path("train")), path)

    def test_unknown_field_gets_the_nearest_one(self):
        self.assert_refused(
            self.standalone(training=TRAINING.replace("seed:", "sede:")),
            "training.textproto:", "sede", "seed")

    def test_unknown_override_gets_the_nearest_field(self):
        self.assert_refused(self.standalone("--set=stop.stepps=3"),
                            "stepps", "steps")

    def test_override_of_another_type(self):
        self.assert_refused(self.standalone("--set=stop.steps=many"),
                            "stop.steps", "many")

    def test_a_stop_on_the_command_line_is_the_only_one_and_is_said(self):
        code, output = self.standalone("--set=stop.epochs=1",
                                       "--progress_every=0")
        self.assertEqual(code, 0, output)
        self.assertIn("the training ends at step 16 (stop.epochs=1), as --set "
                      "says", output)
        self.assertEqual(self.result("train")["global_step"], 16)
        code, output = self.standalone()
        self.assertRegex(output, r"ends at step 4 \(stop.steps=4\), as "
                         r"\S+/training.textproto says")

    def test_a_stop_that_is_no_count_is_refused(self):
        for override in ("stop.steps=9000000000000000000", "stop.epochs=1e14"):
            self.assert_refused(self.standalone("--set=" + override),
                                override.split("=", maxsplit=1)[0],
                                "1000000000000000")

    def test_a_pattern_that_matches_nothing_is_refused(self):
        pins = ["--set=placement=pinned", '--set=placement.pin='
                '{pattern: "logits/wieghts" ps_task: 0}']
        self.assert_refused(self.standalone(*pins), "'logits/wieghts'",
                            "did you mean 'logits/weights'?")
        self.assert_refused(self.standalone("--set=log_tensors.every_steps=1",
                                            "--set=log_tensors.pattern=conv"),
                            "log_tensors.pattern 'conv'", "logits/bias")

    def test_what_does_not_fit_into_memory_is_refused(self):
        self.assert_refused(
            self.standalone(training=TRAINING.replace("i: 3", "i: 1073741824")),
            "model 'tiny'", "bytes of memory")
        self.assert_refused(
            self.standalone("--set=input.synthetic_examples=1000000000000000"),
            "1000000000000000 training examples", "bytes of memory")

    def test_misspelt_layer_gets_the_nearest_one(self):
        self.assert_refused(
            self.standalone(training=TRAINING.replace('"dense"', '"dens"')),
            "logits", "'dens'", "'dense'")

    def test_misspelt_optimizer_gets_the_nearest_one(self):
        self.assert_refused(self.standalone("--set=optimizer.name=adamm"),
                            "'adamm'", "'adam'")

    def test_misspelt_attribute_gets_the_nearest_one(self):
        self.assert_refused(
            self.standalone(training=TRAINING.replace("units", "unit")),
            "logits", "unit", "units")

    def test_shapes_that_cannot_connect_name_both_layers(self):
        broken = TRAINING.replace(
            'layer { name: "loss"',
            'layer { name: "other" type: "dense" input: "flat"'
            ' attr { name: "units" i: 5 } }\n'
            'layer { name: "sum" type: "add" input: "logits" '
            'input: "other" }\nlayer { name: "loss"')
        self.assert_refused(self.standalone(training=broken), "'sum'",
                            "logits", "other", "[3]", "[5]")

    def test_negative_and_zero_sizes(self):
        for override in ("input.batch_size=0", "input.batch_size=-1",
                         "stop.steps=-1", "input.synthetic_examples=-5"):
            self.assert_refused(self.standalone("--set=" + override),
                                override.split("=", maxsplit=1)[0])
        self.assert_refused(
            self.standalone(training=TRAINING.replace("i: 3", "i: 0")),
            "logits", "units")

    def test_more_classes_in_the_data_than_the_model_has(self):
        self.assert_refused(
            self.standalone("--set=input.synthetic_classes=7"), "7", "3")

    def test_batch_larger_than_the_training_set(self):
        self.assert_refused(self.standalone("--set=input.batch_size=65"),
                            "input.batch_size", "65", "64")

    # ---- Data files

    def test_good_idx_files_train(self):
        code, output = self.standalone(*self.idx_training())
        self.assertEqual(code, 0, output)

    def test_missing_data_file_says_what_to_install(self):
        self.assert_refused(
            self.standalone(*self.idx_training(train_images_idx3_ubyte=None)),
            "train-images-idx3-ubyte", "dataset-fashion-mnist")

    def test_missing_test_file_is_found_before_training(self):
        code, output = self.standalone(
            *self.idx_training(t10k_labels_idx1_ubyte=None))
        self.assertEqual(code, 2, output)
        self.assertIn("t10k-labels-idx1-ubyte", output)
        self.assertFalse(os.path.exists(
            self.path("train/ckpt-000000000004")))

    def test_without_a_test_half_it_trains_and_says_so(self):
        flags = self.idx_training(t10k_images_idx3_ubyte=None,
                                  t10k_labels_idx1_ubyte=None)
        code, output = self.standalone(*flags)
        self.assertEqual(code, 0, output)
        self.assertIn("nothing is evaluated", output)
        with open(self.path("train/result.json"), encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual(result["global_step"], 4)
        self.assertNotIn("test_loss", result)
        self.assert_refused(
            self.run_worker("evaluate", "--train_dir=" + self.path("train")),
            "t10k-images-idx3-ubyte", "input.test_fraction")

    def test_truncated_data_file(self):
        self.assert_refused(
            self.standalone(
                *self.idx_training(train_images_idx3_ubyte=IMAGES[:-1])),
            "train-images-idx3-ubyte", "cut short")

    def test_wrong_magic_number(self):
        self.assert_refused(
            self.standalone(
                *self.idx_training(train_images_idx3_ubyte=LABELS)),
            "train-images-idx3-ubyte", "2051", "2049")

    def test_a_damaged_label_is_named(self):
        labels = bytearray(LABELS)
        labels[-3] = 200
        self.assert_refused(
            self.standalone(
                *self.idx_training(train_labels_idx1_ubyte=bytes(labels))),
            "row 5 of '", "train-labels-idx1-ubyte", "200")

    def test_gzip_bomb(self):
        bomb = gzip.compress(IMAGES + bytes(64 << 20))
        self.assert_refused(
            self.standalone(
                *self.idx_training(train_images_idx3_ubyte=bomb)),
            "train-images-idx3-ubyte", "too long")

    # ---- The folder

    def test_train_dir_that_cannot_be_made(self):
        blocker = self.write("file", "")
        path = self.write("training.textproto", TRAINING)
        code, output = self.run_worker(
            "--standalone", "--training=" + path,
            "--train_dir=" + os.path.join(blocker, "train"))
        self.assertEqual(code, 2, output)
        self.assertIn(blocker, output)

    def test_checkpoint_of_another_model_is_refused_with_3(self):
        code, output = self.standalone()
        self.assertEqual(code, 0, output)
        other = TRAINING.replace("units\" i: 3", "units\" i: 4")
        code, output = self.standalone("--set=stop.steps=8", training=other)
        self.assertEqual(code, 3, output)
        self.assertRegex(output, r"(?m) E /job:worker/task:0 .*logits/weights")

    def test_a_signal_ends_the_wait_for_a_taken_port(self):
        with socket.socket() as owner:
            owner.bind(("127.0.0.1", 0))
            owner.listen()
            cluster = self.write("cluster.json", json.dumps({
                "ps": ["127.0.0.1:%d" % port for port in harness.free_ports(1)],
                "worker": ["127.0.0.1:%d" % owner.getsockname()[1]]}))
            worker = self.start_worker(
                cluster, 0,
                "--training=" + self.write("training.textproto", TRAINING),
                "--train_dir=" + self.path("train"))
            worker.wait_for("cluster: ps 1, worker 1")
            worker.send(signal.SIGTERM)
            # Else 2, after 10 s.
            self.assertEqual(worker.wait(), 128 + signal.SIGTERM, worker.output)


if __name__ == "__main__":
    harness.main()
