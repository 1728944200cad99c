"""How much of a gradient leaves before the backward pass is over."""

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


def spans_by_step(path):
    """The X events of each step of a profile."""
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    steps = {}
    for event in events:
        if event["ph"] == "X":
            steps.setdefault(event["args"]["step"], []).append(event)
    return steps


def early_share(spans):
    """Of the bytes of a step, those that were acknowledged in mid-backward."""
    [backward] = [span for span in spans if span["name"] == "backward"]
    over = backward["ts"] + backward["dur"]
    sends = [span for span in spans if "bytes" in span["args"]]
    early = sum(span["args"]["bytes"] for span in sends
                if span["ts"] + span["dur"] <= over)
    return early / sum(span["args"]["bytes"] for span in sends)


class OverlapTest(harness.TestCase):

    def shares(self, name, *flags):
        """Trains with a ps; the early share of each profiled step."""
        cluster = self.write_cluster(name=name + ".json")
        server = self.start_ps(cluster, 0)
        train_dir = self.path(name)
        worker = self.start(name, [
            harness.worker(), "--cluster=" + cluster, "--task_index=0",
            "--train_dir=" + train_dir, "--profile_steps=%d" % STEPS,
            "--profile_from_step=%d" % FIRST_STEP,
            "--set=stop.steps=%d" % (FIRST_STEP + STEPS), *FLAGS, *flags])
        self.assertEqual(worker.wait(), 0, worker.output)
        self.assertEqual(server.wait(), 0, server.output)
        steps = spans_by_step(os.path.join(train_dir, "profile-worker-0.json"))
        self.assertEqual(len(steps), STEPS)
        shares = [early_share(spans) for spans in steps.values()]
        print("%s: %s" % (name, " ".join("%.2f" % share for share in shares)))
        return sorted(shares)

    def test_most_of_a_gradient_leaves_before_the_backward_pass_is_over(self):
        for link in ("grpc", "shared_memory"):
            for mode in ("async", "sync"):
                with self.subTest(link=link, mode=mode):
                    shares = self.shares(link + "_" + mode, "--link=" + link,
                                         "--set=replication=" + mode)
                    self.assertGreaterEqual(shares[STEPS // 2], LEAST_SHARE)

    def test_a_clipped_gradient_waits(self):
        shares = self.shares("clipped",
                             "--set=gradient.clip.by_global_norm=1")
        self.assertEqual(shares[-1], 0)


if __name__ == "__main__":
    harness.main()
