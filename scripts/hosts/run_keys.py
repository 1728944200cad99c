"""The keys that `muster run --certs` sends along: to each host its tasks'."""

import os

from base.failure import Failure

from . import certs

REFUSED = 4


class Keys:
    """Those of a folder of `muster certs`, and newer ones when they come."""

    def __init__(self, certs_dir, planned):
        """`planned`: [(channel, its message `start`)]."""
        self.certs_dir = certs_dir
        self.stems = {}
        for channel, plan in planned:
            self.stems.setdefault(channel, []).append(
                certs.stem_of((plan["job"], plan["index"])))
        self.sent = {}

    def check(self):
        """Raises Failure for what the tasks would refuse."""
        cluster = certs.cluster_of(self.certs_dir)
        for stem in ["ca"] + sorted(sum(self.stems.values(), [])):
            path = os.path.join(self.certs_dir, stem + ".pem")
            if not os.path.exists(path):
                raise Failure(
                    "--certs=%s: %s is missing; `muster certs issue "
                    "--certs_dir=%s --ps N --workers M` makes the keys of all "
                    "tasks" % (self.certs_dir, path, self.certs_dir), REFUSED)
            for complaint in certs.complaints(self.certs_dir, cluster, stem):
                raise Failure("--certs=%s: %s: %s" % (
                    self.certs_dir, stem, complaint), REFUSED)

    def of(self, channel):
        """{file name: text} for a host, which are then taken for sent."""
        self.sent[channel] = self._read(channel)
        return self.sent[channel]

    def look(self):
        """Sends what has changed; half a folder waits for the next time."""
        for channel, sent in self.sent.items():
            try:
                found = self._read(channel)
            except OSError:
                continue
            if found != sent:
                channel.tell("certs", files=found)
                self.sent[channel] = found

    def _read(self, channel):
        # A folder is swapped as a whole: of one of them.
        folder = os.path.realpath(self.certs_dir)
        names = ["ca.pem"] + [stem + end for stem in self.stems[channel]
                              for end in (".pem", ".key")]
        texts = {}
        for name in names:
            with open(os.path.join(folder, name), encoding="ascii") as file:
                texts[name] = file.read()
        return texts
