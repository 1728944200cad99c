"""What Optuna has of a sweep: a study in SWEEP_DIR/optuna.journal.

Optuna's TPE chooses parameters, its pruners end trials. The journal is their
memory: a sweep that is started again goes on with it. Needs the packages of
requirements.txt.
"""

import os

import optuna
from optuna.distributions import (CategoricalDistribution, FloatDistribution,
                                  IntDistribution)
from optuna.storages.journal import JournalFileBackend, JournalStorage
from optuna.trial import Trial, TrialState, create_trial

from base.failure import Failure

NUMBER = "trial"
# A median of fewer trials says little.
MEDIAN_TRIALS = 3
# Steps of a study are evaluations: rungs are the evaluations 1, 3, 9, ...
PRUNERS = {
    "none": optuna.pruners.NopPruner,
    "median": lambda: optuna.pruners.MedianPruner(MEDIAN_TRIALS),
    "asha": lambda: optuna.pruners.SuccessiveHalvingPruner(
        min_resource=1, reduction_factor=3)}


class Study:
    """The study of one metric; another metric has another one in the same
    journal. Whoever has it holds the lock of the sweep's folder."""

    def __init__(self, options, parameters):
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._options = options
        self._parameters = parameters
        self._distributions = {one.field: _distribution(one)
                               for one in parameters}
        direction = "maximize" if options.maximize else "minimize"
        name = "%s %s" % (direction, options.metric)
        self._storage = _open(os.path.join(options.sweep_dir,
                                           "optuna.journal"))
        self._study = optuna.create_study(
            storage=self._storage, study_name=name, direction=direction,
            pruner=_SoundPruner(PRUNERS[options.pruner]()),
            load_if_exists=True)
        self._id = self._storage.get_study_id_from_name(name)

    def suggest(self, number):
        """{field: text} of a new trial, by TPE."""
        # A sampler that lived on would have gone on with its random numbers:
        # a seed a trial, so that no two trials get the same.
        self._study.sampler = optuna.samplers.TPESampler(
            seed=(self._options.seed * 1000003 + number) % 2 ** 32,
            constant_liar=True)
        trial = self._study.ask(self._distributions)
        trial.set_user_attr(NUMBER, number)
        return {one.field: _to_text(one, trial.params[one.field])
                for one in self._parameters}

    def follow(self, record):
        """Tells Optuna what `record`, a trial.Trial, has that is new. Returns
        whether its newest evaluation is new and leaves no hope."""
        found = self._find(record.number)
        if found is None or found.state.is_finished() and not record.ended:
            found = self._add(record)
        if found.state.is_finished():
            return False
        trial = Trial(
            self._study, self._storage.get_trial_id_from_study_id_trial_number(
                self._id, found.number))
        is_hopeless = False
        for i, value in list(enumerate(record.reported()))[
                len(found.intermediate_values):]:
            trial.report(value, i + 1)
            is_hopeless = trial.should_prune()
        if record.ended:
            self._study.tell(found.number, **_outcome(record))
        return is_hopeless

    def drop_others(self, records):
        """Ends the trials of the study that none of `records` goes on with."""
        running = {record.number for record in records if not record.ended}
        for found in self._study.get_trials(False, (TrialState.RUNNING,)):
            if found.user_attrs.get(NUMBER) not in running:
                self._study.tell(found.number, state=TrialState.FAIL)

    def _find(self, number):
        """The newest of this number, or None."""
        return next((one for one in reversed(self._study.get_trials(False))
                     if one.user_attrs.get(NUMBER) == number), None)

    def _add(self, record):
        self._study.add_trial(create_trial(
            state=TrialState.RUNNING, distributions=self._distributions,
            params={one.field: _to_optuna(one, record.parameters[one.field])
                    for one in self._parameters},
            user_attrs={NUMBER: record.number}))
        return self._find(record.number)


class _NoLock:
    """The sweep's folder is locked already."""

    def acquire(self):
        return True

    def release(self):
        pass


class _WithoutFailed:
    """A study as a pruner is to see it. A trial that diverged may have been
    the best before: its values say nothing of the others."""

    def __init__(self, study):
        self._study_with_all = study

    def __getattr__(self, name):
        return getattr(self._study_with_all, name)

    def get_trials(self, deepcopy=True, states=None):
        return [one for one in self._study_with_all.get_trials(deepcopy, states)
                if one.state != TrialState.FAIL]


class _SoundPruner(optuna.pruners.BasePruner):

    def __init__(self, pruner):
        self._pruner = pruner

    def prune(self, study, trial):
        return self._pruner.prune(_WithoutFailed(study), trial)


def _open(path):
    """The storage in a journal. Raises Failure, OSError."""
    with open(path, "ab+") as file:
        # A driver that was killed may have left half a line.
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
    try:
        return JournalStorage(JournalFileBackend(path, _NoLock()))
    except (ValueError, KeyError) as error:
        raise Failure("%s: no journal of Optuna's (%s); without it, it is made "
                      "again of the trials" % (path, error)) from None


def _outcome(record):
    if record.state == "PRUNED":
        return {"state": TrialState.PRUNED}
    if record.state == "DONE" and record.value() is not None:
        return {"state": TrialState.COMPLETE, "values": record.value()}
    return {"state": TrialState.FAIL}


def _distribution(one):
    if one.kind == "choice":
        return CategoricalDistribution(one.points)
    if one.points is not None:
        # By their places, which are at even distances.
        return IntDistribution(0, len(one.points) - 1)
    if one.kind == "int":
        return IntDistribution(one.low, one.high)
    return FloatDistribution(one.low, one.high, log=one.kind == "log")


def _to_optuna(one, text):
    if one.kind == "choice":
        return text
    if one.points is not None:
        return one.points.index(text)
    return int(text) if one.kind == "int" else float(text)


def _to_text(one, value):
    if one.kind == "choice":
        return value
    return one.points[value] if one.points is not None else one.text(value)
