"""scripts/bench.sh: its arithmetic, its patience, and a quick run of the data
plane on a tiny model, between hosts too. No figure is checked: others use this
machine too."""

import json
import math
import os
import re
import struct
import subprocess
import sys
import types
import unittest.mock

from tests.integration import harness
from tests.integration import network_switch

sys.path.insert(0, os.path.abspath("scripts"))
# pylint: disable=wrong-import-position
from benchmark import (data_plane, figures, members, members_jobs, peers,
                       processes, python_workers, quiet, report, training)

BENCH = os.path.abspath("scripts/bench.py")
BENCH_SH = os.path.abspath("scripts/bench.sh")
PROGRAM = "tests/benchmark/data_plane/data_plane"
TINY_BYTES = 40000
# Those that need no training: target, wanted.
TARGETS = {
    "push + pull, tcp over raw TCP and the rule alone": (0.85, "at least"),
    "time of a step: plain gRPC over tcp float32": (5, "at least"),
    "time of a step: plain gRPC over tcp bf16": (8, "at least"),
    "time of a step: plain gRPC with malloc thresholds over tcp float32":
        (1.7, "at least"),
    "time of a step: plain gRPC with malloc thresholds over tcp bf16":
        (2.4, "at least"),
    "time of a step: shared_memory over bare Adam": (1.4, "at most"),
    "time of a step: shared_memory, in place over bare Adam":
        (1.18, "at most"),
    "time of a step: plain gRPC over shared_memory": (20, "at least"),
    "time of a step: plain gRPC with malloc thresholds over shared_memory":
        (10, "at least"),
    "hand-off latency, spinning": (1, "at most"),
    "hand-off latency, parked": (100, "at most"),
    "adam over memcpy": (1.0, "at least"),
    "adam with fused bf16 decode over float32, time": (1.0, "at most"),
}
TARGETS.update({"time of %s over its loads and stores" % rule:
                (1.15, "at most")
                for rule in ("adagrad", "adam", "adamw", "ftrl", "momentum",
                             "nesterov", "rmsprop", "sgd")})
TARGETS.update({what % grpc: target
                for grpc in ("grpc", "another build's grpc")
                for what, target in {
    "push + pull with sgd, tcp over %s": (2.5, "at least"),
    "push + pull with adam, tcp over %s": (1.8, "at least"),
    "push + pull, tcp with mTLS over %s": (0.9, "at least"),
    "CPU of push + pull, tcp over %s": (0.5, "at most"),
    "push + pull of 10,000 tensors of 1 KB, tcp over %s": (1.5, "at least"),
                }.items()})
# Those between hosts.
LINE_TARGETS = {
    "1 Gbit/s: payload over the line's rate, tcp": (0.93, "at least"),
    "50 ms each way: steps over round trips, tcp": (0.97, "at least"),
    "5 % of packets lost: steps/s, tcp over grpc": (0.9, "at least"),
    "5 % of packets overtaken, 5 % doubled: steps/s, tcp over grpc":
        (0.9, "at least"),
}


def measurement(name, samples):
    """One whose bursts give these, round after round."""
    rest = iter(samples)
    return figures.Measurement(name, [name, "a b"],
                               lambda: {"value": next(rest)})


def ratio(one, other, target=None):
    return figures.Figure("ratio", "x", [one, other], lambda one_, other_:
                          one_["value"] / other_["value"], target)


class QuietGate:
    """Finds every burst quiet but these, counted from 0."""

    def __init__(self, noisy=()):
        self.noisy = noisy
        self.bursts = 0

    def run(self, burst):
        self.bursts += 1
        return burst(), self.bursts - 1 not in self.noisy


def summarize(figure, rounds, gate=None):
    [row] = figures.measure([figure], rounds, gate or QuietGate(),
                            lambda line: None)
    return row


class FiguresTest(harness.TestCase):

    def test_a_row_has_minimum_median_and_maximum(self):
        row = summarize(figures.Figure(
            "name", "ms", [measurement("one", [5.0, 1.0, 3.0])],
            lambda numbers: 10 * numbers["value"]), 3)
        self.assertEqual((row["min"], row["value"], row["max"]),
                         (10.0, 30.0, 50.0))
        self.assertEqual(row["samples"], [50.0, 10.0, 30.0])
        self.assertIsNone(row["met"])

    def test_a_ratio_is_taken_within_each_round(self):
        # The machine is ten times slower in the second round. Of the medians
        # the ratio would be 2 / 3.
        row = summarize(ratio(measurement("one", [2.0, 0.2, 9.0]),
                              measurement("other", [1.0, 0.1, 3.0])), 3)
        self.assertEqual([round(one, 9) for one in row["samples"]],
                         [2.0, 2.0, 3.0])
        self.assertEqual(row["command"], "one 'a b'; other 'a b'")

    def test_the_median_decides_whether_a_target_is_met(self):
        for target, samples, met in (
                (figures.at_least(2.0), [9.0, 2.0, 1.0], True),
                (figures.at_least(2.0), [9.0, 1.9, 1.8], False),
                (figures.at_most(2.0), [1.0, 2.0, 9.0], True),
                (figures.at_most(2.0), [1.0, 2.1, 2.2], False)):
            row = summarize(ratio(measurement("one", samples),
                                  measurement("other", [1.0] * 3), target), 3)
            self.assertIs(row["met"], met, "%s of %s" % (target.limit, samples))
            self.assertEqual(report.verdict_of(row),
                             "met" if met else "MISSED")

    def test_a_ratio_is_noisy_if_a_side_is(self):
        row = summarize(ratio(measurement("one", [1.0] * 3),
                              measurement("other", [1.0] * 3)), 3,
                        QuietGate(noisy=(1, 2, 3)))
        self.assertEqual(row["noisy_samples"], 2)

    def test_a_noisy_figure_meets_nothing(self):
        rows = [summarize(ratio(measurement("one", [2.0] * 3),
                                measurement("other", [1.0] * 3), target), 3,
                          QuietGate(noisy=noisy))
                for target, noisy in (
                    (figures.at_least(1.0), (1,)),
                    (figures.at_least(3.0), (1,)), (figures.at_least(1.0), ()),
                    (None, ()))]
        self.assertEqual([report.verdict_of(row) for row in rows], [
            "open (noisy: 1 of 3)", "MISSED (noisy: 1 of 3)", "met", ""])
        self.assertEqual(report.count_met(rows), "1 of 3 targets")

    def test_a_measurement_runs_once_a_round_for_all_its_figures(self):
        shared = measurement("shared", [1.0, 2.0])
        gate = QuietGate()
        rows = figures.measure(
            [ratio(shared, shared), ratio(measurement("own", [4.0, 4.0]),
                                          shared)], 2, gate, lambda line: None)
        self.assertEqual(gate.bursts, 4)
        self.assertEqual(rows[1]["samples"], [4.0, 2.0])

    def test_a_target_has_its_measurements_next_to_each_other(self):
        order = []

        def noted(name):
            return figures.Measurement(name, [name], lambda: order.append(name)
                                       or {"value": 1.0})
        shared, own, other = map(noted, ("shared", "own", "other"))
        rows = figures.measure(
            [ratio(own, shared, figures.at_most(2.0)), ratio(other, shared),
             ratio(other, shared, figures.at_most(2.0))], 2, QuietGate(),
            lambda line: None)
        # The second round has both in the other order.
        self.assertEqual(order, ["own", "shared", "other", "shared",
                                 "shared", "own", "shared", "other"])
        self.assertEqual([row["samples"] for row in rows], [[1.0, 1.0]] * 3)

    def test_numbers_have_three_digits(self):
        self.assertEqual([report.number(value) for value in (
            1234.5, 123.4, 12.34, 1.234, 0.1234, 0.001234, 0)],
            ["1234", "123", "12.3", "1.23", "0.123", "0.00123", "0.000000"])


class LoudMachine:
    """Others use so many cores, look after look and burst after burst."""

    def __init__(self, cores):
        self.cores = iter(cores)
        self.busy = self.own = self.now = 0.0

    def busy_s(self):
        return self.busy

    def own_s(self):
        return self.own

    def now_s(self):
        return self.now

    def pass_time(self, seconds):
        self.now += seconds
        self.busy += next(self.cores) * seconds

    def burst(self):
        """One second of it, on a core of our own."""
        self.pass_time(1.0)
        self.busy += 1.0
        self.own += 1.0
        return self.now


class GateTest(harness.TestCase):

    def run_gate(self, cores, patience=100.0):
        machine = LoudMachine(cores)
        gate = quiet.Gate(patience, machine)
        return gate.run(machine.burst)[1], list(machine.cores)

    def test_waits_for_a_quiet_machine(self):
        self.assertEqual(self.run_gate([1.0, 0.5, 0.0, 0.0, "rest"]),
                         (True, ["rest"]))

    def test_repeats_a_burst_that_was_disturbed(self):
        self.assertEqual(self.run_gate([0.0, 0.5, 0.0, 0.0, "rest"]),
                         (True, ["rest"]))

    def test_gives_up_after_some_disturbed_bursts(self):
        cores = [0.0, 0.5] * quiet.ATTEMPTS
        self.assertEqual(self.run_gate(cores + ["rest"]), (False, ["rest"]))

    def test_patience_has_an_end(self):
        # Three looks of 0.3 s, and then the burst.
        self.assertEqual(self.run_gate([1.0] * 4 + ["rest"], patience=0.8),
                         (False, ["rest"]))

    def test_without_patience_it_only_runs(self):
        self.assertEqual(self.run_gate([1.0, "rest"], patience=0),
                         (False, ["rest"]))


class ProcessesTest(harness.TestCase):

    def test_a_failure_names_the_command_and_the_code(self):
        with self.assertRaisesRegex(processes.Failure,
                                    "^exit code 3: /bin/sh -c exit 3$"):
            processes.run(["/bin/sh", "-c", "exit 3"])

    def test_commands_are_shown_as_one_types_them(self):
        self.assertEqual(
            processes.shown([sys.executable, processes.ROOT + "/scripts/x.py",
                             "--optimizer="]),
            "python3 scripts/x.py --optimizer=")

    def test_each_peer_is_compared_with_what_does_the_same(self):
        own = {name: figures.Measurement(name, [name], None)
               for name in ("1 thread", "2 threads", "memory", "tcp")}
        peer = peers.Peer("Peer", "python3")
        rows = list(peers.torch_figures(peer, own["1 thread"], "1 thread", 7,
                                        "mnist_cnn"))
        rows += peers.torch_figures(peer, own["memory"], "resnet20", 7,
                                    "resnet20")
        rows += peers.tensorflow_figures(
            peer, {1: own["1 thread"], 2: own["2 threads"]},
            {"shared_memory": own["memory"], "tcp": own["tcp"]}, workers=2,
            steps=7)
        ratios = [row for row in rows if row.unit == "x"]
        self.assertEqual(
            [(row.measurements[0].name, row.target.limit) for row in ratios],
            [("1 thread", 1.25), ("memory", 0.9), ("1 thread", 1.12),
             ("2 threads", 1.08), ("memory", 2.2), ("tcp", 1.9)])
        # PyTorch's better layout counts.
        self.assertEqual(ratios[0].value(*(
            {"steps_per_s": speed} for speed in (6.0, 2.0, 3.0))), 2.0)
        for row in rows:
            program = row.measurements[-1].command[1]
            self.assertTrue(os.path.exists(program), program)

    def test_ps_lite_is_compared_over_each_link(self):
        class Options:
            bin_dir, bytes, burst_s = "bin", 4096, 0.5
        peer = peers.Peer("ps-lite", "python3", "a program")
        theirs, *ratios = data_plane.over_ps_lite(
            data_plane.DataPlane(Options), peer)
        self.assertEqual(
            [(row.measurements[0].name, row.target.limit) for row in ratios],
            [("--figure=push_pull --bytes=4096 --codec= --link=%s "
              "--optimizer=sgd" % link, limit)
             for link, limit in (("shared_memory", 8), ("tcp", 1.3))])
        command = theirs.measurements[0].command
        self.assertEqual(command[2:], ["a program", "4096", "0.5"])
        self.assertTrue(os.path.exists(command[1]), command[1])

    def test_python_workers_are_compared_with_pytorch_alone_and_its_own(self):
        options = types.SimpleNamespace(bin_dir="bin", steps=7)
        with unittest.mock.patch.multiple(
                peers, torch=lambda: peers.Peer("PyTorch", "python3")), (
                    unittest.mock.patch.object(processes, "check_program")):
            rows = list(python_workers.figures(options))
        self.assertEqual(
            {tuple(one.command[2] for one in row.measurements):
             row.target.limit for row in rows if row.target is not None},
            {("alone", "async", "alone"): 0.85, ("async", "rpc"): 2.0,
             ("sync", "ddp"): 1.5, ("8",): 100.0})
        self.assertEqual(
            [(row.measurements[1].command[-1], row.target.limit)
             for row in rows if len(row.measurements) == 3],
            [("shared_memory", 1.0), ("tcp", 0.85)])
        for row in rows:
            program = row.measurements[0].command[1]
            self.assertTrue(os.access(program, os.X_OK), program)

    def test_gloo_is_compared_at_each_size(self):
        class Options:
            bin_dir, bytes, burst_s = "bin", 4096, 0.5
        peer = peers.Peer("Gloo's ring", None, "a program")
        rows = list(data_plane.over_gloo(data_plane.DataPlane(Options), peer))
        self.assertEqual([(row.name, row.target.limit) for row in rows], [
            ("all-reduce of %d MB, tcp over Gloo's ring" % size, limit)
            for size, limit in ((1, 0.75), (13, 1.0), (100, 1.0))])
        ours, theirs = rows[1].measurements
        self.assertEqual(ours.command[1:], [
            "--figure=all_reduce", "--bytes=13000000", "--link=tcp",
            "--optimizer=sgd", "--shards=2", "--workers=2", "--time=500ms"])
        self.assertEqual(theirs.command, ["a program", "13000000", "0.5"])
        self.assertTrue(os.path.exists(peers.BUILD_GLOO_RING))

    def test_a_cluster_is_compared_with_free_processes_before_and_after(self):
        row = summarize(training.over_free(
            "ratio", figures.Measurement("own", ["own"], lambda: {
                "steps_per_s": 6.0}),
            figures.Measurement("free", ["free"], map(
                lambda steps: {"steps_per_s": steps},
                (9.0, 3.0)).__next__), figures.at_least(0.5)), 1)
        self.assertEqual(row["samples"], [1.0])
        self.assertEqual(row["command"], "free; own; free")

    def test_a_step_is_compared_with_raw_tcp_and_the_rule(self):
        class Options:
            bin_dir, bytes, burst_s = "bin", 4096, 0.5
        [row] = [row for row in data_plane.push_pull(data_plane.DataPlane(
            Options)) if row.target]
        self.assertEqual(row.value(*({"median_s": seconds}
                                     for seconds in (5.0, 3.0, 1.0))), 0.8)

    def test_the_others_end_with_a_copy_that_fails(self):
        # Each copy has its folder, .../0 and .../1, as the script's name.
        script = """case "$0" in
          */0) cat "$FIFO" >"$FIFO.pid"; cat "$BESIDE" >"$BESIDE.pid"; exit 5 ;;
          *) echo $$ >"$FIFO"; exec sleep 100000 ;;
        esac"""
        beside = 'echo $$ >"$BESIDE"; exec sleep 100000'
        fifos = [self.path("fifo"), self.path("beside")]
        shell = ["env", "FIFO=" + fifos[0], "BESIDE=" + fifos[1], "/bin/sh",
                 "-c"]
        for fifo in fifos:
            os.mkfifo(fifo)
        with self.assertRaisesRegex(processes.Failure, "exit code 5"):
            training.run_copies(shell + [script], copies=2,
                                beside=[shell + [beside]])
        for fifo in fifos:
            with open(fifo + ".pid", encoding="ascii") as file:
                pid = int(file.read())
            self.assertRaises(ProcessLookupError, os.kill, pid, 0)


def packet(number, payload=b"", flags=0, port=5, protocol=members_jobs.TCP):
    """Of 10.0.0.1, with TCP's number of its first byte."""
    return (struct.pack("!B8xB2x4s4x", 0x45, protocol, bytes((10, 0, 0, 1))) +
            struct.pack("!HHIIBB6x", port, 7000, number, 0, 0x50, flags) +
            payload)


def frame(kind, size):
    """Of HTTP/2."""
    return struct.pack("!I", size)[1:] + bytes((kind, 0, 0, 0, 0, 1)) + (
        bytes((members_jobs.HEADERS,)) * size)


class MembersTest(harness.TestCase):
    # One step a second; from 100 s on three.
    STEPS = [(when, when) for when in range(101)] + [
        (100 + when / 3, 100 + when) for when in range(1, 31)]

    def test_calls_are_counted_over_the_borders_of_packets(self):
        data = members_jobs.PREFACE + frame(4, 6) + 3 * (
            frame(members_jobs.HEADERS, 20) + frame(0, 300))
        for cut in (1, 24, 25, 40, 64, 80, len(data) - 1):
            calls = members_jobs.Calls()
            calls.add(packet(0xffffffff, flags=members_jobs.SYN))
            calls.add(packet(0, data[:cut]))
            # TCP sends it once more.
            calls.add(packet(0, data[:cut]))
            calls.add(packet(cut, data[cut:]))
            self.assertEqual(calls.count, 3, cut)

    def test_calls_are_told_from_other_packets(self):
        calls = members_jobs.Calls()
        data = members_jobs.PREFACE + frame(members_jobs.HEADERS, 20)
        calls.add(packet(1, data, protocol=17))
        # One whose beginning was not seen.
        calls.add(packet(1, data))
        self.assertEqual(calls.count, 0)
        for port in (5, 6):
            calls.add(packet(0, flags=members_jobs.SYN, port=port))
            calls.add(packet(1, data, port=port))
        self.assertEqual(calls.count, 2)

    def test_progress_is_read_once_a_step(self):
        text = "".join("2026-01-02 03:04:0%d.500+00:00 I /job:worker/task:0 "
                       "%s\n" % line for line in (
                           (1, "step=7 loss=1"), (2, "saved step=9"),
                           (3, "step=9 loss=1"), (3, "step=9 loss=1")))
        (begin, first), (end, last) = members_jobs.points(text)
        self.assertEqual((first, last, end - begin), (7, 9, 2.0))

    def test_a_rate_is_between_lines_too(self):
        for begin, end, value in ((10, 20, 1), (10.5, 10.7, 1), (102, 105, 3),
                                  (99, 101, 2)):
            self.assertAlmostEqual(members_jobs.rate(self.STEPS, begin, end),
                                   value)

    def test_a_rate_follows_when_little_is_missing(self):
        # 2.7 of 3 come after 0.85 s of a second, looked at each 0.1 s.
        self.assertAlmostEqual(members_jobs.seconds_to_follow(
            self.STEPS, 98.0, 110.0), 2.9)
        slower = [(when, 400 - step) for when, step in (
            (200 - when, step) for when, step in reversed(self.STEPS))]
        # 1.1 after 0.95 s; the change is at 100 s.
        self.assertAlmostEqual(members_jobs.seconds_to_follow(
            slower, 98.0, 110.0), 3.0)

    def test_each_figure_has_the_other_build_beside_it(self):
        options = types.SimpleNamespace(quick=True, before="before",
                                        bin_dir="bin")
        builds = {"": members_jobs.Build("ps", "own"),
                  " of --before": members_jobs.Build("old_ps", "old")}
        rows = [*members.delayed(options, members_jobs, builds),
                *members.members(options, members_jobs, builds[""]),
                *members.fakes(options, "python3", builds)]
        names = [row.name for row in rows]
        self.assertEqual(len(names), len(set(names)))
        targets = {row.name: row for row in rows if row.target}
        speed = targets["softmax, 50 ms each way: steps/s over --before"]
        self.assertEqual([one.command[0] for one in speed.measurements],
                         ["own", "old"])
        self.assertEqual(speed.value({"steps_per_s": 3.0},
                                     {"steps_per_s": 2.0}), 1.5)
        calls = targets["calls of a step over --before"]
        self.assertEqual([one.command[0] for one in calls.measurements],
                         ["own", "own", "old", "old"])
        # 20 steps more, and a heartbeat.
        self.assertEqual(calls.value(*({"calls": number} for number in (
            30, 70, 41, 82))), 1.0)
        cpu = targets["CPU of ps task 0 for a step of 100 over --before"]
        self.assertEqual([one.command[2] for one in cpu.measurements],
                         ["ps", "old_ps"])
        self.assertTrue(os.path.exists(cpu.measurements[0].command[1]))


class BenchTest(harness.TestCase):

    def bench(self, *flags):
        return self.start("bench", [sys.executable, BENCH, *flags])

    def test_a_quick_run_gives_every_figure(self):
        out = self.path("bench.json")
        bench = self.bench(
            "--quick", "--only=data_plane", "--only=optimizer", "--only=lines",
            "--no_build", "--patience=0", "--bytes=%d" % TINY_BYTES,
            "--bin_dir=" + harness.binary(PROGRAM)[:-len(PROGRAM)],
            "--against=" + harness.binary(PROGRAM), "--out=" + out)
        self.assertEqual(bench.wait(), 0)
        with open(out, encoding="utf-8") as file:
            rows = json.load(file)["figures"]
        names = [row["name"] for row in rows]
        self.assertEqual(len(names), len(set(names)), names)
        for row in rows:
            self.assertEqual(len(row["samples"]), 1, row)
            self.assertTrue(math.isfinite(row["value"]), row)
            self.assertGreater(row["value"], 0, row)
            self.assertIn("data_plane --figure=", row["command"])
            # In the table, too.
            self.assertRegex(bench.output,
                             "(?m)^%s " % re.escape(row["name"]))
        for link in data_plane.LINKS:
            self.assertIn("push + pull, %s, 40 KB" % link, names)
        self.assertEqual(
            {row["name"]: (row["target"], row["wanted"])
             for row in rows if row["target"] is not None},
            {**TARGETS, **LINE_TARGETS} if network_switch.REASON is None
            else TARGETS)

    def test_a_mistake_in_the_flags_is_named_before_anything_is_done(self):
        for flag, message in (
                ("--only=everything", "invalid choice: 'everything'"),
                ("--quik", "unrecognized arguments: --quik"),
                ("--rounds=0", "wanted a positive number"),
                ("--against=/none", "no program at '/none'"),
                ("--bytes=6", "wanted a multiple of 4")):
            bench = self.bench(flag)
            self.assertEqual(bench.wait(), 2, flag)
            self.assertIn(message, bench.output)

    def test_a_missing_program_is_named(self):
        bench = self.bench("--quick", "--only=data_plane", "--no_build",
                           "--bin_dir=" + self.dir)
        self.assertEqual(bench.wait(), 1)
        self.assertIn("no program at '%s" % self.dir, bench.output)

    def test_the_shell_script_has_help(self):
        done = subprocess.run([BENCH_SH, "--help"], stdout=subprocess.PIPE,
                              check=True, timeout=harness.DEADLINE_S)
        self.assertIn(b"--quick", done.stdout)


    def test_the_figures_of_the_front_page_are_measured(self):
        peer = peers.Peer("Peer", "python3", "a program")
        options = types.SimpleNamespace(
            bin_dir="bin", steps=4, bytes=4096, burst_s=0.5, quick=True,
            peers=True)
        with unittest.mock.patch.multiple(
                peers, torch=lambda: peer, tensorflow=lambda: peer):
            rows = list(training.figures(options))
        rows += data_plane.over_ps_lite(data_plane.DataPlane(options), peer)
        names = {row.name.replace("Peer", "ps-lite (BytePS's fork, the slower "
                                  "one)") for row in rows}
        self.assertLessEqual(set(report.RATIOS), names)
        self.assertIn(("1 ps, tcp", 2), [row.point for row in rows])


class ProgramTest(harness.TestCase):
    """What only the C++ program itself decides."""

    def program(self, *flags):
        return self.start("data_plane", [harness.binary(PROGRAM), *flags])

    def test_mistakes_exit_with_two_and_are_named(self):
        for flags, message in (
                (["--figure=push_pul"], "--figure=push_pul: wanted all_reduce, apply"),
                (["--figure=push", "--link=x"], "--link=x: wanted in_process"),
                (["--figure=push", "--codec=x"], "unknown codec 'x'"),
                (["--figure=push", "--tensors=0"], "--tensors=0: wanted 1 to"),
                (["--figure=apply", "--workers=2"], "has one worker"),
                (["--figre=x"], "--figure")):
            program = self.program(*flags)
            self.assertEqual(program.wait(), 2, flags)
            self.assertIn(message, program.output)

    def test_a_missing_network_namespace_is_named(self):
        program = self.program("--figure=push", "--server_netns=x")
        self.assertEqual(program.wait(), 1)
        self.assertIn("--server_netns=x: entering a network namespace",
                      program.output)


if __name__ == "__main__":
    harness.main()
