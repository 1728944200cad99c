"""Which mode to choose: sentences whose numbers and words the runs decide.

Python 3 standard library only.
"""

from tests.benchmark.replication import rows
from tests.benchmark.replication import verdicts


def _title(name):
    return rows.BY_NAME[name].title


def _than(study, name, other):
    """"12 % slower than"."""
    change = 100 * (study.speed(name) / study.speed(other) - 1)
    return "%.0f %% %s than" % (abs(change),
                                "faster" if change >= 0 else "slower")


def points(study, name):
    """"lost 0.12 points (limit 0.5: met)"."""
    verdict = verdicts.judge(study, rows.BY_NAME[name])
    if verdict is None:
        return "was not run"
    return "%s %.2f points (limit %g: %s)" % (
        "lost" if verdict.lost >= 0 else "gained", abs(verdict.lost),
        verdict.limit, verdict.text)


def _one_machine(study):
    names = ("single", "towers", "async2", "sync2")
    fastest = max(names, key=study.speed)
    return "**One machine**: fastest is %s. Examples/s: %s." % (
        _title(fastest), "; ".join("%s: %.0f" % (
            _title(name), study.speed(name)) for name in names))


def _same_result(study):
    return ("**The result of one process**: `sync`. With 2 workers it %s, with "
            "4 it %s." % (points(study, "sync2"), points(study, "sync4")))


def _steady(study):
    return ("**Workers of equal speed**: `sync` was %s `async` with 2 workers, "
            "and %s it with 4." % (_than(study, "sync2", "async2"),
                                   _than(study, "sync4", "async4")))


def _straggler(study):
    def kept(name, base):
        return 100 * study.speed(name) / study.speed(base)
    cores = study.runs("sync4")[0]["cores"]
    shared = (" Here 4 workers share %d cores, and one that stands still leaves "
              "its part of them to the others." % cores if cores < 4 else "")
    return ("**A worker that stands still half of the time**, of 4: `sync` "
            "kept %.0f %% of its speed, `async` %.0f %%; of 2, `sync` %.0f %%.%s"
            % (kept("sync4_straggler", "sync4"),
               kept("async4_straggler", "async4"),
               kept("sync2_straggler", "sync2"), shared))


def _backup(study):
    run = study.runs("sync4_backup")[0]
    return ("**A backup worker** (the first 3 gradients of 4 make the update): "
            "%s `sync` with the same straggler; %d gradients were dropped in "
            "%d updates." % (_than(study, "sync4_backup", "sync4_straggler"),
                             run["dropped_steps"], run["steps"]))


def _async(study):
    return ("**`async`**: with 2 workers it %s at a mean staleness of %.1f, "
            "with 4 it %s at %.1f. Give each worker its part of the batch and "
            "scale the rate by the root." % (
                points(study, "async2"),
                study.mean("async2", "staleness_mean"),
                points(study, "async4"),
                study.mean("async4", "staleness_mean")))


def _bounded(study):
    return ("**`bounded_staleness`**, 2 workers: " + "; ".join(
        "bound %d %s and was %s `async`" % (
            bound, points(study, "ssp%d_2" % bound),
            _than(study, "ssp%d_2" % bound, "async2"))
        for bound in (0, 3, 10)) + ".")


def _towers(study):
    return ("**Several devices in a worker**: two towers were %s one process "
            "and %s; 2 workers of two towers each were %s those of one." % (
                _than(study, "towers", "single"), points(study, "towers"),
                _than(study, "hybrid", "sync2")))


def _time_to_target(study):
    reached = {name: verdicts.reach(study.curve(name))
               for name in ("single", "sync2", "async2", "sync4", "async4")}
    found = sorted((at.wall_s, name) for name, at in reached.items() if at)
    if not found:
        return "**Time to %.2f**: no row came to it." % rows.TARGET
    return "**Time to %.2f** at the same batch: %s." % (
        rows.TARGET, "; ".join("%s: %.0f s" % (_title(name), wall_s)
                               for wall_s, name in found))


def _grown(study):
    texts = []
    for name in ("sync4", "sync4_grown", "async4", "async4_grown"):
        at = verdicts.reach(study.curve(name))
        texts.append("%s: %s" % (_title(name), "not reached" if at is None else
                                 "%.0f in %.0f s" % (at.examples, at.wall_s)))
    return ("**A batch that grows with the workers**. Examples until %.2f: %s."
            % (rows.TARGET, "; ".join(texts)))


# (what it says, the rows that it needs).
LINES = (
    (_one_machine, ("single", "towers", "async2", "sync2")),
    (_same_result, ("single", "sync2", "sync4")),
    (_steady, ("sync2", "async2", "sync4", "async4")),
    (_straggler, ("sync2", "sync4", "async4", "sync2_straggler",
                  "sync4_straggler", "async4_straggler")),
    (_backup, ("sync4_backup", "sync4_straggler")),
    (_async, ("single", "async2", "async4")),
    (_bounded, ("single", "async2", "ssp0_2", "ssp3_2", "ssp10_2")),
    (_towers, ("single", "towers", "hybrid", "sync2")),
    (_time_to_target, ("single", "sync2", "async2", "sync4", "async4")),
    (_grown, ("sync4", "sync4_grown", "async4", "async4_grown")),
)


def lines(study):
    """One for each whose rows were run."""
    return [say(study) for say, needed in LINES if study.has(*needed)]
