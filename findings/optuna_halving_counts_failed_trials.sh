#!/usr/bin/env bash
# Optuna 5.0.0: SuccessiveHalvingPruner compares a trial with trials that FAILED,
# too. A trial whose loss was low at a rung before it failed (it diverged, its
# disk was full) prunes every later trial that is worse there, though it can never
# be the best: study.best_trial looks at COMPLETE trials alone. MedianPruner
# leaves failed trials out, so that the two pruners disagree on the same trials.
# https://optuna.readthedocs.io/en/v5.0.0/reference/generated/optuna.pruners.SuccessiveHalvingPruner.html
# does not say which trials are compared. scripts/sweep wraps the pruner.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install optuna==5.0.0
"$folder/venv/bin/python" - <<'PYTHON'
import optuna

optuna.logging.set_verbosity(optuna.logging.ERROR)


def prunes_after_a_failure(pruner):
    """Whether a trial of loss 0.5 is pruned after one of 0.1 that failed."""
    study = optuna.create_study(direction="minimize", pruner=pruner)
    failed = study.ask()
    failed.report(0.1, step=1)
    failed.should_prune()
    study.tell(failed, state=optuna.trial.TrialState.FAIL)
    good = study.ask()
    good.report(0.5, step=1)
    pruned = good.should_prune()
    study.tell(good, 0.5)
    assert study.best_trial.number == good.number
    return pruned


halving = prunes_after_a_failure(optuna.pruners.SuccessiveHalvingPruner(
    min_resource=1, reduction_factor=2))
median = prunes_after_a_failure(optuna.pruners.MedianPruner(
    n_startup_trials=0, n_warmup_steps=0))
print("optuna %s: SuccessiveHalvingPruner prunes beside a failed trial: %s; "
      "MedianPruner: %s" % (optuna.__version__, halving, median))
assert halving and not median, "the behaviour has changed"
PYTHON
