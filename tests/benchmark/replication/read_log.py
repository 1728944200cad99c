"""Curves and speed from the lines of a chief that prints every step.

Python 3 standard library only.
"""

import datetime
import re

STEP = re.compile(r"^(\S+ \S+) I \S+ step=(\d+) loss=(\S+) ")
TEST = re.compile(
    r"^(\S+ \S+) I \S+ step=(\d+) test_accuracy=(\S+) test_loss=(\S+)")
# Of a curve of the training loss: each is the mean of the steps since the
# last.
POINTS = 30


class NoSteps(Exception):
    """The lines tell of no training."""


def time_s(stamp):
    return datetime.datetime.fromisoformat(stamp).timestamp()


class ChiefLog:
    """What the lines of a run's chief say. `start_s` is wall second 0."""

    def __init__(self, output, start_s):
        # (wall s, global step, loss) and (wall s, global step, accuracy, loss).
        self.steps = []
        self.tests = []
        self.evaluation_s = 0.0
        self._trained_s = 0.0
        self._trained_steps = 0
        self._last_s = 0.0
        tested = False
        for line in output.splitlines():
            if match := STEP.match(line):
                self._add_step(time_s(match[1]) - start_s, int(match[2]),
                               float(match[3]), tested)
                tested = False
            elif match := TEST.match(line):
                self._add_test(time_s(match[1]) - start_s, int(match[2]),
                               float(match[3]), float(match[4]))
                tested = True
        if len(self.steps) < 2:
            raise NoSteps("the chief has printed %d steps" % len(self.steps))

    def _add_step(self, wall_s, step, loss, tested):
        # The time in which the chief evaluates, and others may go on, is no
        # measure of the speed.
        if self.steps and not tested:
            self._trained_s += wall_s - self.steps[-1][0]
            self._trained_steps += step - self.steps[-1][1]
        self.steps.append((wall_s, step, loss))
        self._last_s = wall_s

    def _add_test(self, wall_s, step, accuracy, loss):
        # The last looks back on the others' last steps and on the save, too.
        self.evaluation_s += wall_s - self._last_s
        self._last_s = wall_s
        # The one at the end, of a step that was looked at already.
        if self.tests and self.tests[-1][1] == step:
            return
        self.tests.append((wall_s, step, accuracy, loss))

    def steps_per_s(self):
        """Global steps a second while the chief trained."""
        if self._trained_steps > 0:
            return self._trained_steps / max(self._trained_s, 1e-3)
        # A run of moments, with an evaluation after each step of the chief.
        return self.steps[-1][1] / max(self.steps[-1][0], 1e-3)

    def loss_curve(self, rows_per_step):
        """At most POINTS of {step, wall_s, examples, loss}."""
        size = -(-len(self.steps) // POINTS)
        parts = [self.steps[i:i + size]
                 for i in range(0, len(self.steps), size)]
        return [{"step": part[-1][1], "wall_s": round(part[-1][0], 3),
                 "examples": part[-1][1] * rows_per_step,
                 "loss": round(sum(loss for _, _, loss in part) / len(part),
                               5)}
                for part in parts]

    def test_curve(self, rows_per_step):
        """{step, wall_s, examples, accuracy, loss} of each evaluation."""
        return [{"step": step, "wall_s": round(wall_s, 3),
                 "examples": step * rows_per_step, "accuracy": accuracy,
                 "loss": loss}
                for wall_s, step, accuracy, loss in self.tests]
