"""A profile of a running job: `musterctl profile`, read back."""

import collections
import json
import os
import re

from tests.integration import harness
from tests.integration import recovery

STEPS = 20
# For which a worker takes longer than a test to kill somebody.
MANY = 1000
WORKERS = ["/job:worker/task:%d" % i for i in range(3)]
PS = ["/job:ps/task:%d" % i for i in range(2)]
TRAINING = harness.softmax_regression(100000000, more="%s")


class Trace:
    """The file, by processes and their lanes."""

    def __init__(self, path):
        self.bytes = os.path.getsize(path)
        with open(path) as file:
            self.events = json.load(file)["traceEvents"]
        self.names = self.metadata("process_name", "name", "pid")
        self.labels = self.metadata("process_labels", "labels", "pid")
        self.lanes = self.metadata("thread_name", "name", "pid", "tid")

    def metadata(self, name, value, *key):
        return {tuple(event[part] for part in key): event["args"][value]
                for event in self.events if event["name"] == name}

    def spans(self, task, lane):
        return [event for event in self.events if event["ph"] == "X" and
                self.names[event["pid"],] == task and
                self.lanes[event["pid"], event["tid"]].startswith(lane)]

    def steps(self, task):
        return {span["args"]["step"] for span in self.spans(task, "step")
                if span["name"] == "step"}

    def clock_error_us(self, event):
        return int(re.search(r"clock within (\d+) us",
                             self.labels[event["pid"],]).group(1))

    def arrows(self):
        """Pairs of both ends."""
        ends = collections.defaultdict(dict)
        for event in self.events:
            if event["ph"] in "sf":
                assert event["ph"] not in ends[event["id"]], event
                ends[event["id"]][event["ph"]] = event
        return [(pair["s"], pair["f"]) for pair in ends.values()]

    def span_at(self, end):
        """The span that an arrow's end is on."""
        return next(event for event in self.events if event["ph"] == "X" and
                    all(event[key] == end[key] for key in ("pid", "tid", "ts")))


class ProfileTest(recovery.TestCase):

    def setUp(self):
        super().setUp()
        self.cluster = self.write_cluster(ps=2, workers=3)
        self.trace = self.path("trace.json")

    def start_job(self, more=""):
        training = self.write("t.textproto", TRAINING % more)
        self.ps = [self.start_ps(self.cluster, i, "--worker_timeout=2s")
                   for i in range(2)]
        self.workers = [
            self.start_worker(
                self.cluster, i, "--training=" + training,
                "--train_dir=" + self.path("run"), "--compute_threads=1",
                "--progress_every=200ms")
            for i in range(3)]
        for worker in self.workers:
            worker.wait_for(r"\bstep=[1-9]")

    def ctl(self, *flags):
        return [harness.musterctl(), "profile", "-o", self.trace,
                "--cluster=" + self.cluster, *flags]

    def check_lanes(self, trace):
        for worker in WORKERS:
            self.assertEqual(len(trace.steps(worker)), STEPS, worker)
            for lane in ("compute", "push", "send"):
                self.assertTrue(trace.spans(worker, lane), (worker, lane))
        for ps in PS:
            names = {span["name"] for span in trace.spans(ps, "shard")}
            self.assertLessEqual({"check", "answer"}, names)
            self.assertTrue(trace.spans(ps, "waiting"), ps)

    def check_arrows(self, trace):
        pushed = collections.Counter()
        for push, update in trace.arrows():
            error = trace.clock_error_us(push) + trace.clock_error_us(update)
            self.assertGreaterEqual(update["ts"], push["ts"] - error)
            step = trace.span_at(push)["args"]["step"]
            self.assertEqual(trace.span_at(update)["args"]["step"], step)
            pushed[trace.names[push["pid"],], trace.names[update["pid"],],
                   step] += 1
        for worker in WORKERS:
            # The last one's update may come after the end.
            for step in sorted(trace.steps(worker))[:-1]:
                for ps in PS:
                    self.assertEqual(pushed[worker, ps, step], 1,
                                     (worker, ps, step))

    def check_job_profile(self):
        code, output = self.run_to_end("musterctl",
                                       self.ctl("--steps=%d" % STEPS))
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"20 steps of 3 workers and 2 ps tasks")
        trace = Trace(self.trace)
        self.assertEqual(list(trace.names.values()), PS + WORKERS)
        self.assertLess(trace.bytes, 10e6)
        self.say("profile of %d bytes" % trace.bytes)
        self.check_lanes(trace)
        self.check_arrows(trace)
        return trace

    def test_async_each_push_leads_to_its_update(self):
        self.start_job()
        trace = self.check_job_profile()
        for ps in PS:
            self.assertTrue([span for span in trace.spans(ps, "shard")
                             if span["name"] == "apply"])
        # Once more, in the place of the file.
        self.check_job_profile()

    def test_sync_each_push_leads_to_the_update_of_its_round(self):
        self.start_job("replication { sync {} }")
        trace = self.check_job_profile()
        for ps in PS:
            self.assertTrue(trace.spans(ps, "rounds"))
            self.assertIn("apply", {span["name"]
                                    for span in trace.spans(ps, "shard")})

    def test_a_worker_killed_meanwhile_is_named_and_the_rest_is_there(self):
        self.start_job()
        ctl = self.start("musterctl", self.ctl("--steps=%d" % MANY))
        self.ps[0].wait_for(r"profile 1 of 1000 steps of each worker begins")
        self.workers[2].kill()
        self.assertEqual(ctl.wait(), 138, ctl.output)
        self.assertRegex(ctl.output, r"not in it: /job:worker/task:2: lost")
        trace = Trace(self.trace)
        self.assertEqual(list(trace.names.values()),
                         PS + WORKERS[:2] + [WORKERS[2] + ": lost"])
        for worker in WORKERS[:2]:
            self.assertEqual(len(trace.steps(worker)), MANY)

    def test_a_ps_started_anew_meanwhile_is_named_and_the_rest_is_there(self):
        self.start_job()
        ctl = self.start("musterctl",
                         self.ctl("--steps=%d" % MANY, "--max_wait=3"))
        self.ps[0].wait_for(r"profile 1 of 1000 steps of each worker begins")
        self.ps[1].kill()
        self.ps[1] = self.start_ps(self.cluster, 1)
        self.assertEqual(ctl.wait(), 138, ctl.output)
        self.assertRegex(ctl.output, r"not in it: /job:ps/task:1: ")
        self.assertIn(PS[0], Trace(self.trace).names.values())

    def test_ps_0_started_anew_meanwhile_is_named_and_the_rest_is_there(self):
        self.start_job()
        ctl = self.start("musterctl", self.ctl("--steps=%d" % MANY))
        self.ps[0].wait_for(r"profile 1 of 1000 steps of each worker begins")
        self.ps[0].kill()
        self.ps[0] = self.start_ps(self.cluster, 0)
        self.assertEqual(ctl.wait(), 138, ctl.output)
        self.assertRegex(ctl.output, r"not in it: /job:ps/task:0: ")
        self.assertIn(PS[1], Trace(self.trace).names.values())

    def test_a_job_of_a_namespace_is_profiled(self):
        self.cluster = self.write_cluster(ps=1, workers=1)
        ps = self.start_ps(self.cluster, 0, "--keep_serving")
        training = self.write("t.textproto", TRAINING % "")
        self.start_worker(
            self.cluster, 0, "--training=" + training, "--namespace=a",
            "--compute_threads=1",
            "--progress_every=200ms").wait_for(r"\bstep=[1-9]")
        code, output = self.run_to_end(
            "musterctl", self.ctl("--steps=5", "--namespace=a"))
        self.assertEqual(code, 0, output)
        self.assertIn("namespace 'a': profile 1 of 5 steps", ps.output)
        trace = Trace(self.trace)
        self.assertEqual(list(trace.names.values()), [PS[0], WORKERS[0]])
        self.assertEqual(len(trace.steps(WORKERS[0])), 5)
        self.assertGreaterEqual(len(trace.arrows()), 4)

    def test_mistakes_are_said_before_a_profile_begins(self):
        self.start_job()
        for flag, why in (("--steps=0", "wanted 1 to 1000"),
                          ("--o=" + self.path("no/such/folder.json"),
                           "wanted a file in a folder that is there"),
                          ("--namespace=other", "other")):
            code, output = self.run_to_end("musterctl", self.ctl(flag))
            self.assertEqual(code, 2, output)
            self.assertIn(why, output)
        self.assertNotIn("of each worker begins", self.ps[0].output)


if __name__ == "__main__":
    harness.main()
