"""The worker on cards. Fake ones (fake_cuda_backend.cc): all of it but CUDA
itself. With MUSTER_CARD_WORKER=PATH that worker, on the cards of this machine;
in a bundle of gpu_bundle.sh, with NVIDIA's libraries in LD_LIBRARY_PATH:

    MUSTER_CARD_WORKER=worker/worker python3 -m tests.integration.card_test
"""

import math
import os
import re
import unittest

from tests.integration import device_trace, harness

STEPS = 60
# Of which a profile is written, from the tenth on.
PROFILED = 5
# Eight images of 64 and their labels, each at the start of a line.
BATCH = 8 * 64 * 4 + 64
# Bytes of each.
PARAMETERS = {"conv/weights": 4 * 4 * 3 * 3, "conv/bias": 4 * 4,
              "logits/weights": 4 * 4 * 36, "logits/bias": 4 * 4}
# Every kind of layer that the tests below look for, in the table of devices.
TRAINING = """
model {
  name: "tiny_cnn"
  input_shape: [1, 8, 8]
  layer {
    name: "conv" type: "conv2d"
    attr { name: "filters" i: 4 } attr { name: "kernel" i: 3 }
    attr { name: "activation" s: "relu" }
  }
  layer { name: "pool" type: "max_pool" }
  layer { name: "flatten" type: "flatten" }
  layer { name: "logits" type: "dense" attr { name: "units" i: 4 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input {
  type: "synthetic" batch_size: 8
  synthetic_examples: 256 synthetic_test_examples: 64 synthetic_classes: 4
}
compute { tf32: false }
optimizer { name: "adam" attr { name: "learning_rate" f: 0.01 } }
stop { steps: %d }
seed: 7
""" % STEPS
# Of a model that guesses among four classes.
FIRST_LOSS = math.log(4)
# 60 steps of this problem get below it; without gradients, or with wrong ones,
# it stays.
LOSS_RATIO = 0.8
# Of test losses. The first steps of Adam divide by the root of small numbers,
# which magnifies what float32 sums in another order differ by.
TOLERANCE = 1e-3
NO_CARDS = dict(os.environ, FAKE_CARDS="none")
# Of a build with CUDA, in place of the one with the fakes.
REAL = os.environ.get("MUSTER_CARD_WORKER")

wants_fakes = unittest.skipIf(
    REAL, "MUSTER_CARD_WORKER: it looks for what the fake cards have")


def card_worker():
    return (os.path.abspath(REAL) if REAL else
            harness.binary("tests/worker/backend/cuda/fake_card_worker"))


class CardTest(harness.TestCase):

    def run_worker(self, *flags, env=None):
        return self.run_to_end("worker", [card_worker(), *flags], env=env)

    def want_two_cards(self):
        code, output = self.run_worker("devices")
        self.assertEqual(code, 0, output)
        if "cuda:0 to cuda:" not in output:
            self.skipTest("wants two cards; there are: " + output)

    def try_train(self, name, *flags, env=None):
        """Alone; returns (exit code, output)."""
        return self.run_worker("--standalone",
                               *self.training_flags(TRAINING, name, *flags),
                               env=env)

    def train(self, name, *flags, env=None):
        """To a good end; returns (result.json, output)."""
        code, output = self.try_train(name, *flags, env=env)
        self.assertEqual(code, 0, output)
        return self.result(name), output

    def check_learned(self, result, devices):
        self.assertEqual(result["devices"], devices)
        self.assertEqual(result["global_step"], STEPS)
        self.assertTrue(math.isfinite(result["final_loss"]))
        self.assertLess(result["test_loss"], LOSS_RATIO * FIRST_LOSS)

    def test_trains_on_the_card_without_being_told_to(self):
        result, output = self.train("cuda")
        self.check_learned(result, ["cuda:0"])
        self.assertNotIn("cannot be used", output)
        cpu, _ = self.train("cpu", "--device=cpu")
        self.check_learned(cpu, ["cpu:0"])
        self.assertAlmostEqual(result["test_loss"], cpu["test_loss"],
                               delta=TOLERANCE)

    def test_graphs_change_no_bit(self):
        self.train("with")
        self.train("without", "--set=compute.cuda_graphs=false")
        self.assertEqual(self.parameter_bytes("with", STEPS),
                         self.parameter_bytes("without", STEPS))

    def profile(self, name):
        """Of worker 0: the JSON, and {lane: its spans}."""
        profile = self.read_json(name + "/profile-worker-0.json")
        lanes = {event["tid"]: event["args"]["name"]
                 for event in profile["traceEvents"]
                 if event["name"] == "thread_name"}
        spans = {}
        for event in profile["traceEvents"]:
            if event["ph"] == "X":
                spans.setdefault(lanes[event["tid"]], []).append(event)
        return profile, spans

    def check_lanes(self, spans):
        """What the card did lies where the host has waited for it; of a lane
        nothing overlaps. Times are written as thousandths of a microsecond, of
        numbers that have not as many digits."""
        rounding = 1.0
        computed = {span["args"]["step"]: span for span in spans["compute"]
                    if span["name"] == "compute"}
        self.assertEqual(len(computed), PROFILED)
        for lane in (device_trace.COMPUTE, device_trace.TO_DEVICE,
                     device_trace.TO_HOST):
            end = 0
            for span in spans[lane]:
                self.assertGreaterEqual(span["ts"], end - rounding, span)
                end = span["ts"] + span["dur"]
                if span["name"] == "update":
                    continue
                around = computed[span["args"]["step"]]
                self.assertGreaterEqual(span["ts"], around["ts"] - rounding)
                self.assertLessEqual(
                    end, around["ts"] + around["dur"] + rounding)

    def test_a_profile_shows_what_the_card_does(self):
        moved = {}
        for name, flags in (
                ("held", []), ("plain", ["--set=compute.cuda_graphs=false"]),
                ("sent", ["--set=compute.update_on_device=false"])):
            self.train(name, "--profile_steps=%d" % PROFILED, *flags)
            profile, spans = self.profile(name)
            self.check_lanes(spans)
            names = {span["name"] for span in spans[device_trace.COMPUTE]}
            self.assertEqual(names, {"forward", "backward"} | (
                {"update"} if name != "sent" else set()))
            trace = device_trace.DeviceTrace(profile)
            self.assertEqual(trace.steps, PROFILED)
            self.assertGreater(trace.busy_percent(), 0)
            self.assertLessEqual(trace.busy_percent(), 100)
            batches = [span["args"]["bytes"]
                       for span in spans[device_trace.TO_DEVICE]
                       if span["name"] == "batch"]
            # One may be copied in the step before, or for the step after.
            self.assertAlmostEqual(len(batches), PROFILED, delta=1)
            self.assertEqual(set(batches), {BATCH})
            self.assertGreaterEqual(trace.bytes_a_step(device_trace.TO_DEVICE),
                                    BATCH * (PROFILED - 1) / PROFILED)
            moved[name] = trace.bytes_a_step(device_trace.TO_HOST)
        self.assertEqual(moved["held"], moved["plain"])
        # Of "sent", the last one.
        for lane, others in ((device_trace.TO_DEVICE, {"batch"}),
                             (device_trace.TO_HOST, {"loss", "results"})):
            copies = {span["name"]: span["args"]["bytes"]
                      for span in spans[lane]}
            self.assertEqual(set(copies), others | set(PARAMETERS))
            for parameter, size in PARAMETERS.items():
                self.assertEqual(copies[parameter], size)

    def test_low_precision_learns_too(self):
        for field in ("tf32", "bf16"):
            result, _ = self.train(field, "--set=compute.%s=true" % field)
            self.check_learned(result, ["cuda:0"])
        self.assertNotEqual(self.parameter_bytes("tf32", STEPS),
                            self.parameter_bytes("bf16", STEPS))

    def train_on_cluster(self, name, workers, *flags):
        """With one ps; returns what the chief printed."""
        cluster = self.write_cluster(ps=1, workers=workers)
        flags = self.training_flags(TRAINING, name, *flags)
        tasks = [self.start_ps(cluster, 0)] + [
            self.start("worker %d" % i, [
                card_worker(), "--cluster=" + cluster,
                "--task_index=%d" % i, *flags])
            for i in range(workers)]
        for task in tasks:
            self.assertEqual(task.wait(), 0, task.output)
        return tasks[1].output

    def test_a_ps_and_a_worker_over_shared_memory(self):
        output = self.train_on_cluster("pair", 1)
        self.assertRegex(output, r"link to /job:ps/task:0: shared memory")
        result = self.result("pair")
        self.check_learned(result, ["cuda:0"])
        self.assertEqual(result["cluster"], {"ps": 1, "worker": 1})
        alone, _ = self.train("alone")
        self.assertAlmostEqual(result["test_loss"], alone["test_loss"],
                               delta=TOLERANCE)

    def test_a_profile_of_a_worker_with_a_ps(self):
        self.train_on_cluster("pair", 1, "--profile_steps=%d" % PROFILED)
        profile, spans = self.profile("pair")
        self.check_lanes(spans)
        self.assertIn("push", spans)
        self.assertEqual(device_trace.DeviceTrace(profile).steps, PROFILED)

    def test_parameters_are_read_in_place_of_a_ps(self):
        self.train_on_cluster("in_place", 1,
                              "--set=replication.async.pull=IN_PLACE")
        self.check_learned(self.result("in_place"), ["cuda:0"])

    def test_two_synchronous_workers_on_one_card(self):
        self.train_on_cluster("two", 2,
                              "--set=replication.sync.total_replicas=2",
                              "--set=replication.sync.min_replicas=2")
        result = self.result("two")
        self.check_learned(result, ["cuda:0"])
        self.assertEqual(len(result["workers"]), 2)

    def test_two_towers(self):
        self.want_two_cards()
        cpu, _ = self.train("cpu", "--device=cpu", "--devices=2")
        for name, where, flags in (
                ("cards", "by the devices", []),
                # Both on card 0, where NCCL makes no mean.
                ("parts", "on cuda:0", ["--gpu_virtual_devices=2"]),
                ("accumulated", "by the devices", [
                    "--set=input.batch_size=4",
                    "--set=gradient.accumulate_batches=2"])):
            with self.subTest(name):
                result, output = self.train(name, "--devices=2", *flags)
                self.check_learned(result, ["cuda:0", "cuda:1"])
                self.assertIn("gradients are averaged " + where, output)
                self.assertEqual(result["rows_per_push"], 16)
                self.assertAlmostEqual(result["test_loss"], cpu["test_loss"],
                                       delta=TOLERANCE)

    def test_a_model_over_two_cards_and_the_cpu(self):
        self.want_two_cards()
        cpu, _ = self.train("cpu", "--device=cpu")
        halves = ["--set=model.conv.split.parts=2",
                  "--set=model.conv.split.devices=cuda:0,cuda:1"]
        second = "--set=model.device_rule={pattern: 'logits|loss' " \
                 "device: '%s'}"
        for name, where, flags in (
                ("layers", "cuda:0+cuda:1", [second % "cuda:1"]),
                # Both on card 0.
                ("parts", "cuda:0+cuda:1", [
                    *halves, "--gpu_virtual_devices=2"]),
                ("stages", "cuda:0+cpu:0", [
                    second % "cpu:0", "--set=model.pipeline.micro_batches=4",
                    "--set=compute.update_on_device=true"])):
            with self.subTest(name):
                result, output = self.train(name, "--log_device_placement",
                                            *flags)
                self.check_learned(result, [where])
                self.assertRegex(output,
                                 r"transfer +cuda:\d +forward +from host")
                self.assertAlmostEqual(result["test_loss"], cpu["test_loss"],
                                       delta=TOLERANCE)
        self.assertIn("compute.update_on_device is not possible, the host "
                      "updates the parameters: the model is divided", output)

    def test_a_profile_has_lanes_for_each_tower(self):
        self.want_two_cards()
        self.train("cards", "--devices=2", "--profile_steps=%d" % PROFILED)
        _, spans = self.profile("cards")
        for card in ("cuda:0", "cuda:1"):
            self.assertEqual(
                {span["args"]["step"] for span in
                 spans["device compute of " + card]},
                set(range(10, 10 + PROFILED)))
            self.assertIn("mean of conv/weights", {
                span["name"] for span in spans["to host of " + card]})

    def test_a_checkpoint_goes_from_card_to_cpu_and_back(self):
        self.train("moved", "--set=stop.steps=20")
        _, output = self.train("moved", "--set=stop.steps=40", "--device=cpu")
        self.assertRegex(output, r"restored \S*ckpt-000000000020")
        result, output = self.train("moved")
        self.assertRegex(output, r"restored \S*ckpt-000000000040")
        self.check_learned(result, ["cuda:0"])
        through, _ = self.train("through")
        self.assertAlmostEqual(result["test_loss"], through["test_loss"],
                               delta=TOLERANCE)

    def test_too_little_memory_says_how_much_and_what_to_do(self):
        rows = ["--set=input.batch_size=2000",
                "--set=input.synthetic_examples=4000"]
        code, output = self.try_train("little", "--gpu_memory_limit_mb=1",
                                      *rows)
        self.assertEqual(code, 2, output)
        self.assertRegex(
            output, r"cuda:0: allocate .*: asked for \d+ bytes; used are \d+ "
            r"of the 1048576 that --gpu_memory_fraction or "
            r"--gpu_memory_limit_mb allows; raise it, or take a smaller batch")
        # A part of a card has a part of the limit.
        code, output = self.try_train(
            "part", "--gpu_memory_limit_mb=4", "--gpu_virtual_devices=2",
            "--devices=2", *rows)
        self.assertEqual(code, 2, output)
        self.assertRegex(output, r"of the 2097152 that ")

    def test_an_evaluation_is_counted_to_the_memory_of_its_tower(self):
        for towers in (1, 2):
            code, output = self.try_train(
                "towers%d" % towers, "--devices=%d" % towers,
                "--gpu_memory_limit_mb=1", "--set=evaluation.batch_size=2000")
            self.assertEqual(code, 2, output)
            self.assertRegex(output, r"asked for \d+ bytes; used are [1-9]\d* "
                             r"of the 1048576 ")

    @wants_fakes
    def test_more_than_the_card_has_says_what_is_free(self):
        code, output = self.try_train(
            "huge", "--set=input.batch_size=2000000",
            "--set=input.synthetic_examples=2000000")
        self.assertEqual(code, 2, output)
        self.assertRegex(output, r"cuda:0: allocate .*asked for \d+ bytes; "
                         r".*\d+ of 1073741824 are free on the device")

    def test_tells_what_computes_each_layer(self):
        _, output = self.train("told", "--log_device_placement",
                               "--set=compute.tf32=true")
        for line in (r"layer +device +pass +primitive +memory bytes",
                     r"conv +cuda:0 +forward +cuDNN \w+, TF32, "
                     r"bias fused if cuDNN can +\d+",
                     r"pool +cuda:0 +forward +- +\d+",
                     r"logits +cuda:0 +forward +cuBLASLt, TF32 +\d+",
                     r"loss +cuda:0 +loss +- +\d+",
                     r"logits +cuda:0 +backward data +cuBLASLt, TF32 +\d+",
                     r"conv +cuda:0 +backward weights +cuDNN .*, TF32 +\d+"):
            self.assertRegex(output, r"(?m) %s$" % line)

    @wants_fakes
    def test_a_missing_device_is_refused_or_the_cpu_stands_in(self):
        code, output = self.try_train("refused", "--device=cuda:2")
        self.assertEqual(code, 2, output)
        self.assertRegex(output, r"--device=cuda:2: there is no device "
                         r"'cuda:2'; there are .*cuda:0 to cuda:1")
        result, output = self.train("soft", "--device=cuda:2",
                                    "--allow_soft_placement")
        self.assertEqual(len(re.findall(
            r"--device=cuda:2: there is no device .*; cpu:0 is used, as "
            r"--allow_soft_placement says", output)), 1, output)
        self.check_learned(result, ["cpu:0"])

    @wants_fakes
    def test_without_a_driver_the_cpu_trains(self):
        result, output = self.train("fallback", env=NO_CARDS)
        self.check_learned(result, ["cpu:0"])
        self.assertEqual(len(re.findall(
            r"cuda:0 cannot be used: .*; cpu:0 is used", output)), 1, output)
        code, output = self.try_train("wanted", "--device=cuda", env=NO_CARDS)
        self.assertEqual(code, 2, output)
        self.assertRegex(output, r"--device=cuda: cuda:0 cannot be used: ")

    @wants_fakes
    def test_lists_the_cards_or_why_there_are_none(self):
        code, output = self.run_worker("devices")
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"(?m)^cuda\n  cuda:0 to cuda:1: Fake GPU, "
                         r"compute capability 9.0, 1.0 GiB, "
                         r"cuDNN 9\.\d+\.\d+, cuBLASLt 13\.\d+\.\d+$")
        _, output = self.run_worker("devices",
                                    "--gpu_virtual_devices=2")
        self.assertRegex(output, r"cuda:3: .*, card 1 part 2 of 2")
        code, output = self.run_worker("devices", env=NO_CARDS)
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"(?m)^cuda\n  cuda:0: unusable: .*"
                         r"no driver of NVIDIA; install one for CUDA 13")


if __name__ == "__main__":
    harness.main()
