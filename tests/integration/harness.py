"""Starts real processes, watches what they print, and cleans up after them.

    class TrainTest(harness.TestCase):
        def test_one_worker_trains(self):
            cluster = self.write_cluster(ps=1, workers=1)
            self.start_ps(cluster, 0)
            worker = self.start_worker(cluster, 0, "--set=stop.steps=20")
            worker.wait_for(r"step=1\\b")
            self.assertEqual(worker.wait(), 0)

    if __name__ == "__main__":
        harness.main()

Nothing here sleeps: a test waits for a line or an exit, with a deadline that
is far above what a loaded machine needs. Only processes that a test started
are ever killed. What they printed is shown if the test fails. Limits
by the wall clock hold in a soak only (expect_within): another process can take
a core away for seconds. Python 3 standard library only.
"""

import ctypes
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from xml.sax import saxutils

# scripts/test.sh --soak: full counts, and limits by the wall clock.
SOAK = bool(os.environ.get("MUSTER_SOAK"))
# For a line or an exit; sanitizers and two busy cores included.
DEADLINE_S = 60.0
PR_SET_PDEATHSIG = 1
# Below Linux's range for outgoing connections (32768 and up).
PORTS = range(20000, 32000)
LINK_NAMES = {"grpc": "gRPC", "shared_memory": "shared memory", "tcp": "TCP"}
# Given to a task that may not listen yet.
_ports_in_use = set()
_ports_lock = threading.Lock()


def binary(path):
    """The absolute path of a built file, inside Bazel's runfiles or not."""
    for root in (".", "bazel-bin"):
        candidate = os.path.abspath(os.path.join(root, path))
        if os.path.isfile(candidate):
            return candidate
    raise FileNotFoundError("'%s': add it to the test's data" % path)


def ps_server():
    return binary("ps_server/ps_server")


def worker():
    return binary("worker/worker")


def musterctl():
    return binary("worker/ctl/musterctl")


def link_flags():
    """--link of the workers, for a suite that runs over each link."""
    link = os.environ.get("MUSTER_LINK")
    return ["--link=" + link] if link else []


def check_link(output, link):
    """That a worker which got --link=`link` has used that way and no other."""
    said = set(re.findall(r"link to \S+: (shared memory|gRPC|TCP)\b", output))
    if not said and not re.search(r"\bstep=[1-9]", output):
        return  # It ended before it had a ps.
    if said != {LINK_NAMES[link]}:
        raise AssertionError("--link=%s, but the links to the ps tasks were: "
                             "%s" % (link, sorted(said) or "not said"))


def softmax_regression(steps, batch_size=32, examples=2000, test_examples=500,
                       learning_rate=0.1, more=""):
    """A training file of one dense layer: a second has hundreds of steps."""
    return """
model {
  name: "softmax_regression"
  input_shape: [64]
  layer { name: "logits" type: "dense" attr { name: "units" i: 10 } }
  layer { name: "loss" type: "softmax_cross_entropy" }
}
input {
  type: "synthetic" batch_size: %d
  synthetic_examples: %d synthetic_test_examples: %d synthetic_classes: 10
}
optimizer { name: "sgd" attr { name: "learning_rate" f: %g } }
stop { steps: %d }
seed: 7
%s
""" % (batch_size, examples, test_examples, learning_rate, steps, more)


def free_ports(count):
    """`count` loopback ports on which nobody listens, each given out once."""
    ports = []
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with _ports_lock:
            if port in _ports_in_use:
                continue
            _ports_in_use.add(port)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError("no free ports")


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """One process. stdout and stderr are read together, line by line."""

    def __init__(self, name, command, env=None, cwd=None):
        self.name = name
        self._lines = []
        # When each line was read, monotonic.
        self._times = []
        self._ended = False
        self._seen = 0
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, env=env,
            cwd=cwd, preexec_fn=_die_with_parent)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self._process.pid

    @property
    def output(self):
        with self._changed:
            return "\n".join(self._lines)

    def _read(self):
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(
                    line.decode("utf-8", "replace").rstrip("\n"))
                self._times.append(time.monotonic())
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, pattern, deadline_s=DEADLINE_S):
        """The match of the first line that matches, after the last one found.

        Raises AssertionError if the process ends or the deadline passes.
        """
        deadline = time.monotonic() + deadline_s
        with self._changed:
            while True:
                while self._seen < len(self._lines):
                    self._seen += 1
                    match = re.search(pattern, self._lines[self._seen - 1])
                    if match:
                        return match
                if self._ended:
                    raise AssertionError("%s ended without printing '%s'" %
                                         (self.name, pattern))
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError("%s did not print '%s' in %g s" %
                                         (self.name, pattern, deadline_s))
                self._changed.wait(left)

    def wait_for_line_after(self, pattern, since, deadline_s=DEADLINE_S):
        """When the first line that matches was read, not before `since`.

        Unlike wait_for it may be asked for the same line again.
        """
        deadline = time.monotonic() + deadline_s
        looked_at = 0
        with self._changed:
            while True:
                for i in range(looked_at, len(self._lines)):
                    if self._times[i] >= since and re.search(
                            pattern, self._lines[i]):
                        return self._times[i]
                looked_at = len(self._lines)
                left = deadline - time.monotonic()
                if self._ended or left <= 0:
                    raise AssertionError(
                        "%s %s without printing '%s'" %
                        (self.name, "ended" if self._ended else
                         "was waited for %g s" % deadline_s, pattern))
                self._changed.wait(left)

    def has_said(self, pattern, since):
        """Whether a line that matches was read, not before `since`."""
        with self._changed:
            return any(at >= since and re.search(pattern, line)
                       for at, line in zip(self._times, self._lines))

    def longest_silence(self, pattern, since):
        """The longest time without a matching line, from `since` until now."""
        with self._changed:
            times = [at for at, line in zip(self._times, self._lines)
                     if at >= since and re.search(pattern, line)]
        times = [since] + times + [time.monotonic()]
        return max(b - a for a, b in zip(times, times[1:]))

    def wait(self, deadline_s=DEADLINE_S):
        """The exit code; 128 + n for signal n."""
        try:
            code = self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError("%s did not end in %g s" %
                                 (self.name, deadline_s)) from None
        self._reader.join(deadline_s)
        return code if code >= 0 else 128 - code

    def running(self):
        return self._process.poll() is None

    def send(self, signum):
        """Sends to this process alone."""
        if self.running():
            self._process.send_signal(signum)

    def kill(self):
        """Kills the process and its group, and reaps it."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._reader.join(DEADLINE_S)
        self._process.stdout.close()


class TestCase(unittest.TestCase):
    """A test with a folder of its own and processes that end with it."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self._processes = []
        self._linked_workers = []
        self.addCleanup(self._end_processes)

    def _end_processes(self):
        for process in self._processes:
            process.kill()
        if self._failed():
            for process in self._processes:
                sys.stderr.write("--- output of %s\n%s\n" %
                                 (process.name, process.output))
        for process in self._linked_workers:
            check_link(process.output, os.environ["MUSTER_LINK"])

    def _failed(self):
        # Set by ResultWithXml, which is told of a failure before the clean-up.
        return getattr(self, "muster_failed", False)

    def expect_within(self, what, seconds, limit_s):
        """Prints how long it took; a soak holds it against the limit."""
        sys.stderr.write("time: %s: %.3g s, limit %g s%s\n" % (
            what, seconds, limit_s, "" if SOAK else " (asserted by --soak)"))
        sys.stderr.flush()
        if SOAK:
            self.assertLess(seconds, limit_s, what)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        """Writes a file at once: jobs of one test may read it meanwhile."""
        unique = "%s.%d" % (self.path(name), threading.get_ident())
        with open(unique, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(unique, self.path(name))
        return self.path(name)

    def read_json(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    def result(self, train_dir):
        """What a training that has ended wrote of itself."""
        return self.read_json(os.path.join(train_dir, "result.json"))

    def parameter_bytes(self, train_dir, step):
        """The file of a checkpoint's parameters, as it is."""
        path = os.path.join(self.path(train_dir), "ckpt-%012d" % step,
                            "parameters.safetensors")
        with open(path, "rb") as file:
            return file.read()

    def training_flags(self, training, train_dir, *flags):
        """Of a worker; `training` is the text of the training file."""
        return ["--training=" + self.write("training.textproto", training),
                "--train_dir=" + self.path(train_dir), "--compute_threads=1",
                *flags]

    def write_cluster(self, ps=1, workers=1, name="cluster.json",
                      evaluator=False):
        """Writes a ClusterSpec of free loopback ports; returns its path."""
        addresses = ["127.0.0.1:%d" % port
                     for port in free_ports(ps + workers + evaluator)]
        jobs = {"ps": addresses[:ps], "worker": addresses[ps:ps + workers]}
        if evaluator:
            jobs["evaluator"] = addresses[ps + workers:]
        return self.write(name, json.dumps({"cluster": jobs}))

    def start(self, name, command, env=None, cwd=None):
        process = Process(name, command, env, cwd)
        self._processes.append(process)
        return process

    def run_to_end(self, name, command, deadline_s=DEADLINE_S, env=None):
        """Returns (exit code, output)."""
        process = self.start(name, command, env)
        code = process.wait(deadline_s)
        return code, process.output

    def train_standalone(self, *flags):
        """Trains in one process, to a good end; returns the output."""
        code, output = self.run_to_end(
            "standalone", [worker(), "--standalone", *flags])
        self.assertEqual(code, 0, output)
        return output

    def start_ps(self, cluster, index, *flags):
        return self.start("ps %d" % index, [
            ps_server(), "--cluster=" + cluster, "--task_index=%d" % index,
            *flags])

    def start_worker(self, cluster, index, *flags, under=()):
        """`index` may be "any"; `under`: the command that runs it, such as a
        tracer's."""
        process = self.start("worker %s" % index, [
            *under, worker(), "--cluster=" + cluster,
            "--task_index=%s" % index, *link_flags(), *flags])
        if link_flags() and not any(
                flag.startswith("--link=") for flag in flags):
            self._linked_workers.append(process)
        return process


class ResultWithXml(unittest.TextTestResult):
    """Also keeps what the test report needs."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cases = []
        self._start = 0.0

    def startTest(self, test):
        super().startTest(test)
        self._start = time.monotonic()
        self.cases.append({"id": test.id(), "seconds": 0.0, "outcome": ""})

    def stopTest(self, test):
        self.cases[-1]["seconds"] = time.monotonic() - self._start
        super().stopTest(test)

    def _note(self, test, outcome, text):
        test.muster_failed = outcome == "failure"
        if not self.cases or self.cases[-1]["outcome"]:
            self.cases.append({"id": test.id(), "seconds": 0.0, "outcome": ""})
        self.cases[-1].update(outcome=outcome, text=text)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, "failure", self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, "failure", self.errors[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note(test, "skipped", reason)

    def write_xml(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write("<testsuites><testsuite name=\"integration\">\n")
            for case in self.cases:
                suite, _, name = case["id"].rpartition(".")
                file.write("<testcase classname=%s name=%s time=\"%.2f\">" % (
                    saxutils.quoteattr(suite), saxutils.quoteattr(name),
                    case["seconds"]))
                if case["outcome"]:
                    file.write("<%s message=%s/>" % (
                        case["outcome"], saxutils.quoteattr(case["text"])))
                file.write("</testcase>\n")
            file.write("</testsuite></testsuites>\n")


def main():
    """Runs the tests of the calling file, and reports them to Bazel."""
    runner = unittest.TextTestRunner(verbosity=2, resultclass=ResultWithXml)
    program = unittest.main(module="__main__", testRunner=runner, exit=False)
    xml = os.environ.get("XML_OUTPUT_FILE")
    if xml:
        program.result.write_xml(xml)
    sys.exit(0 if program.result.wasSuccessful() else 1)
