"""The definition of a sweep, and its folder:

    sweep.json, training.textproto   the definition (trainings/definition.py)
    trial-0000/, ...                 trial.py
    sweep.csv, parallel.svg          its outcome
"""

from trainings.definition import Folder, check_training, training_copy

FIELDS = ("param", "set", "sampler", "seed", "pruner")


def check_fields(parameters, options):
    """Has musterctl read the training with each parameter at each of its ends,
    the others at their first. Raises Failure."""
    first = {one.field: one.ends()[0] for one in parameters}
    _check({}, "", options)
    for one in parameters:
        for end in one.ends():
            _check(dict(first, **{one.field: end}),
                   "--param '%s': " % one.field, options)


def _check(values, about, options):
    check_training(options.bin_dir,
                   _flags(options.training, options, values), about)


def training_flags(options, values):
    """Flags of a worker: `values` over all trials' --set."""
    return _flags(training_copy(options.sweep_dir), options, values)


def _flags(training, options, values):
    return ["--training=" + training, *("--set=" + one for one in options.set),
            *("--set=%s=%s" % item for item in values.items())]


def claim(options):
    """The lock of the sweep's folder: Folder.claim."""
    return Folder("sweep", options.sweep_dir).claim(
        options.training, {name: getattr(options, name) for name in FIELDS})
