"""What is on its way while a step is computed: gradients, parameters, a step.

That something is on its way does not depend on the machine's speed; how much of
it does, and MUSTER_SOAK=1 holds that against its limits.
"""

import json
import os

from tests.integration import harness

FLAGS = [
    "--training=worker/model/zoo/mnist_cnn.textproto", "--compute_threads=1",
    "--set=input.type=synthetic", "--set=input.synthetic_examples=2000",
    "--set=input.synthetic_test_examples=100", "--set=input.batch_size=64",
    "--set=checkpoint.every_seconds=0",
]
# The first steps allocate and warm up.
FIRST_STEP = 3
STEPS = 6
# Of the bytes of a step's gradient: nearly all of mnist_cnn's are dense1's, of
# which the convolutions' backward pass, most of the work, comes after.
LEAST_SHARE = 0.6
# Of the time that a pull takes.
LEAST_HIDDEN = 0.1
LINKS = ["tcp", "shared_memory"] + (["grpc"] if harness.SOAK else [])


def spans_by_step(path):
    """The X events of each step of a profile."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    steps = {}
    for event in events:
        if event["ph"] == "X":
            steps.setdefault(event["args"]["step"], []).append(event)
    return steps


def only(spans, name):
    """The begin and end of the one span of that name."""
    [found] = [span for span in spans if span["name"] == name]
    return found["ts"], found["ts"] + found["dur"]


def overlap(a, b):
    """How long two spans go on together."""
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))


def early_share(spans):
    """Of the bytes of a step, those that were acknowledged in mid-backward."""
    _, over = only(spans, "backward")
    sends = [span for span in spans if "bytes" in span["args"]]
    early = sum(span["args"]["bytes"] for span in sends
                if span["ts"] + span["dur"] <= over)
    return early / sum(span["args"]["bytes"] for span in sends)


def hidden_share(spans):
    """Of the time of a step's pull, that in which it computed: the forward pass
    without its waits for parameters."""
    pull = only(spans, "pull")
    hidden = overlap(pull, only(spans, "forward"))
    for span in spans:
        if span["name"].startswith("wait for "):
            hidden -= overlap(pull, (span["ts"], span["ts"] + span["dur"]))
    return hidden / (pull[1] - pull[0])


class OverlapTest(harness.TestCase):

    def profile(self, name, *flags):
        """Trains with a ps; the spans of each profiled step, in order."""
        cluster = self.write_cluster(name=name + ".json")
        server = self.start_ps(cluster, 0)
        train_dir = self.path(name)
        worker = self.start(name, [
            harness.worker(), "--cluster=" + cluster, "--task_index=0",
            "--train_dir=" + train_dir, "--profile_steps=%d-%d" % (
                FIRST_STEP, FIRST_STEP + STEPS - 1),
            "--set=stop.steps=%d" % (FIRST_STEP + STEPS), *FLAGS, *flags])
        self.assertEqual(worker.wait(), 0, worker.output)
        self.assertEqual(server.wait(), 0, server.output)
        steps = spans_by_step(os.path.join(train_dir, "profile-worker-0.json"))
        self.assertEqual(len(steps), STEPS)
        return [steps[number] for number in sorted(steps)]

    def shares(self, name, share_of, *flags):
        """The same share of each profiled step, the smallest first."""
        shares = [share_of(spans) for spans in self.profile(name, *flags)]
        print("%s: %s" % (name, " ".join("%.2f" % share for share in shares)))
        return sorted(shares)

    def expect_share(self, shares, least):
        """Some of it in some step; in a soak so much in most of them."""
        self.assertGreater(shares[-1], 0)
        if harness.SOAK:
            self.assertGreaterEqual(shares[STEPS // 2], least)

    def test_most_of_a_gradient_leaves_before_the_backward_pass_is_over(self):
        for link in LINKS:
            for mode in ("async", "sync"):
                with self.subTest(link=link, mode=mode):
                    shares = self.shares(link + "_" + mode, early_share,
                                         "--link=" + link,
                                         "--set=replication=" + mode)
                    self.expect_share(shares, LEAST_SHARE)

    def test_a_clipped_gradient_waits(self):
        shares = self.shares("clipped", early_share,
                             "--set=gradient.clip.by_global_norm=1")
        self.assertEqual(shares[-1], 0)

    def test_the_forward_pass_begins_while_parameters_arrive(self):
        # In asynchronous replication a push brings them. The convolutions, with
        # 1.6 % of the bytes, come first and take longest.
        for link in LINKS:
            with self.subTest(link=link):
                shares = self.shares("pull_" + link, hidden_share,
                                     "--link=" + link,
                                     "--set=replication=sync")
                self.expect_share(shares, LEAST_HIDDEN)

    def test_a_pipelined_step_is_computed_while_the_one_before_is_pushed(self):
        steps = self.profile("pipelined",
                             "--set=replication.async.pipeline_depth=2")
        for before, step in zip(steps, steps[1:]):
            begin, end = only(step, "compute")
            self.assertLess(only(before, "push")[0], begin)
            self.assertLessEqual(end, only(before, "report")[0])
            self.assertLess(end, only(step, "push")[0])


if __name__ == "__main__":
    harness.main()
