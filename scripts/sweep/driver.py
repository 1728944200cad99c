"""The trainings of the verb `sweep`, and what is said of them."""

import signal

from base.failure import Failure, nearest
from trainings.driver import Driver

from .definition import training_flags
from .table import best
from .trial import Trial, read_evaluation


class SweepDriver(Driver):
    """`trials`: those that are there already. `study`: what Optuna has of them
    (study.py), None where it is not asked."""

    VERB = "sweep"

    def __init__(self, options, sampler, shares, trials, cluster=None,
                 study=None):
        super().__init__(options.bin_dir, shares, trials, cluster)
        self.options = options
        self.sampler = sampler
        self.study = study

    def run(self):
        for trial in self.records:
            self.on_figures(trial)
            self.is_hopeless(trial)
        if self.study is not None:
            self.study.drop_others(self.records)
        return super().run()

    def count(self):
        return min(self.options.trials, self.sampler.size)

    def new_record(self, number):
        trial = Trial(self.options.sweep_dir, number, self.options.metric)
        trial.parameters = (
            self.study if self.options.sampler == "tpe" else self.sampler
        ).suggest(number)
        return trial

    def is_hopeless(self, trial):
        """Has Optuna know what the trial has come to, and its pruner judge."""
        return self.study is not None and self.study.follow(trial)

    def flags_of(self, record):
        return training_flags(self.options, record.parameters)

    def on_line(self, task, record, line):
        evaluation = read_evaluation(line)
        if evaluation is None:
            return
        record.add_evaluation(*evaluation)
        record.save()
        # One that is NaN is there, and no number.
        if self.is_awaited(evaluation[2]) and (
                " %s=" % self.options.metric not in line):
            self.check_metric(evaluation[1])
            return
        if self.is_hopeless(record) and task not in self.asked:
            self.asked[task] = "PRUNED"
            task.send(signal.SIGTERM)

    def is_awaited(self, half):
        """Whether each evaluation of a half has the metric. Beside a validation
        half the test half is evaluated at the end alone, where no pruner
        looks."""
        wanted = self.options.metric.partition("_")[0] + "_"
        return wanted == half or (wanted == "test_" and
                                  self.options.pruner != "none")

    def on_figures(self, record):
        self.check_metric(record.figures)

    def check_metric(self, figures):
        """Ends the sweep if a trial's figures, where it has any, lack the
        metric."""
        if figures and self.options.metric not in figures:
            self.end_with(Failure(
                "--metric: a trial has no '%s'%s; start again with another "
                "--metric, nothing is lost" % (
                    self.options.metric,
                    nearest(self.options.metric, sorted(figures)))))

    def say_ended(self, record):
        self.is_hopeless(record)
        metric = self.options.metric
        if (self.options.pruner != "none" and record.state == "DONE" and
                len(record.evaluations()) < 2):
            self.say("--pruner=%s had nothing to look at before the end of "
                     "trial %d; wanted --set=evaluation.every_steps=N" % (
                         self.options.pruner, record.number))
        what = record.error if record.state == "FAILED" else "%s=%s" % (
            metric, "%.6g" % record.value() if record.value() is not None
            else "none")
        self.say("trial %d %s in %.0f s: %s: %s" % (
            record.number, record.state, record.seconds, record.described(),
            what))

    def say_progress(self):
        found = best(self.records, self.options.maximize)
        self.say("%d of %d ended, %d running, %s, about %s left" % (
            self.count_ended(), self.count(), len(self.running),
            "no best yet" if found is None else "best %s=%.6g (trial %d)" % (
                self.options.metric, found.value(), found.number),
            self.time_left()))
