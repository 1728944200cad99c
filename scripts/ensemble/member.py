"""The members of an ensemble (trainings/record.py), and their driver."""

from base.failure import Failure
from trainings.definition import training_copy
from trainings.driver import Driver
from trainings.record import Record


class Member(Record):
    KIND = "member"
    DIGITS = 2


class EnsembleDriver(Driver):
    """`each` has the fields of each member. Those that have failed are tried
    again. Raises Failure if a member that is there has other fields."""

    VERB = "ensemble"

    def __init__(self, options, each, shares, cluster=None):
        members = [one for one in Member.load_all(options.ensemble_dir)
                   if one.number < len(each)]
        for member in members:
            if member.parameters != each[member.number]:
                raise Failure("%s was trained with '%s', wanted %s; choose "
                              "another --ensemble_dir, or delete it" % (
                                  member.folder, member.described(),
                                  each[member.number]))
            if member.state == "FAILED":
                member.state = "INTERRUPTED"
        super().__init__(options.bin_dir, shares, members, cluster)
        self.options = options
        self.each = each

    def count(self):
        return len(self.each)

    def new_record(self, number):
        member = Member(self.options.ensemble_dir, number)
        member.parameters = self.each[number]
        return member

    def flags_of(self, record):
        return training_flags(training_copy(self.options.ensemble_dir),
                              self.options, record.parameters)

    def say_ended(self, record):
        what = record.error if record.state == "FAILED" else " ".join(
            "%s=%.6g" % (name, value)
            for name, value in record.figures.items()
            if name.startswith("test_") and name != "test_examples" and
            value is not None)
        self.say("member %d %s in %.0f s: %s: %s" % (
            record.number, record.state, record.seconds, record.described(),
            what))

    def say_progress(self):
        self.say("%d of %d ended, %d running, about %s left" % (
            self.count_ended(), self.count(), len(self.running),
            self.time_left()))


def training_flags(training, options, fields):
    """Flags of a worker or of musterctl: `fields` over all members' --set."""
    return ["--training=" + training, *("--set=" + one for one in options.set),
            *("--set=%s=%s" % item for item in fields.items())]
