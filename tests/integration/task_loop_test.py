"""scripts/base: programs that hang, print much or leave something behind."""

import os
import signal
import sys
from unittest import mock

from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts"))
# pylint: disable=wrong-import-position
from base import programs

HANG = ["sleep", "inf"]
# Of one that hangs: long enough for it to have begun.
SHORT_S = 0.3
LONG_S = 60


class ProgramsTest(harness.TestCase):

    def setUp(self):
        super().setUp()
        for name in ("GRACE_S", "KILL_S"):
            patch = mock.patch.object(programs, name, SHORT_S)
            patch.start()
            self.addCleanup(patch.stop)
        self.programs = programs.Programs()
        self.addCleanup(self.programs.__exit__)

    def shell(self, text):
        return self.programs.start(["/bin/sh", "-c", text])

    def test_an_end_has_a_code_and_a_text(self):
        for text, code in (("echo said; exit 3", 3), ("echo said; kill $$",
                                                      128 + signal.SIGTERM)):
            one = self.shell(text)
            self.assertTrue(self.programs.wait(one, LONG_S))
            self.assertEqual((one.exit_code, one.text()), (code, "said\n"))

    def test_one_that_hangs_is_ended(self):
        one = self.programs.start(HANG)
        self.assertFalse(self.programs.wait(one, SHORT_S))
        self.assertTrue(self.programs.end(one))
        self.assertEqual(one.exit_code, 128 + signal.SIGTERM)

    def test_one_that_ignores_sigterm_is_killed(self):
        one = self.shell("trap '' TERM; echo ready; sleep inf")
        self.assertEqual(
            self.programs.await_line(one, "read", LONG_S), "ready")
        self.assertTrue(self.programs.end(one))
        self.assertEqual(one.exit_code, 128 + signal.SIGKILL)

    def test_one_that_cannot_be_killed_is_left(self):
        one = self.programs.start(HANG)
        with mock.patch.object(one, "send"):
            self.assertFalse(self.programs.end(one))
        one.kill()

    def test_what_a_program_has_started_ends_with_it(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        one = self.shell("for i in $(seq 50); do sleep inf >%s & done; echo "
                         "begun >%s" % (fifo, fifo))
        self.assertTrue(self.programs.wait(one, LONG_S))
        os.set_blocking(reader, True)
        self.assertEqual(os.read(reader, 100), b"begun\n")
        # The end: nobody has it open any more.
        self.assertEqual(os.read(reader, 100), b"")

    def test_others_are_read_meanwhile(self):
        other = self.shell("seq 100000; echo last")
        one = self.shell("true")
        for program in (one, other):
            self.assertTrue(self.programs.wait(program, LONG_S))
        self.assertTrue(other.text().startswith("1\n2\n"))
        self.assertTrue(other.text().endswith("\n100000\nlast\n"))
        self.assertIn("[... %d lines are left out ...]" % (
            100001 - 2 * programs.KEPT_LINES), other.text())

    def test_a_line_that_never_comes(self):
        one = self.shell("echo other")
        self.assertIsNone(self.programs.await_line(one, "line", LONG_S))
        self.assertEqual(one.exit_code, 0)

    def test_a_signal_interrupts_a_wait(self):
        handlers = self.programs.take_signals()
        self.addCleanup(self.programs.give_signals_back, handlers)
        one = self.shell("kill -TERM $PPID; sleep inf")
        with self.assertRaisesRegex(programs.Interrupted, "SIGTERM"):
            self.programs.wait(one, LONG_S)

    def test_the_end_of_a_block_ends_what_runs(self):
        with self.assertRaises(KeyError), programs.Programs() as block:
            one = block.start(HANG)
            raise KeyError
        self.assertEqual(one.exit_code, 128 + signal.SIGKILL)


if __name__ == "__main__":
    harness.main()
