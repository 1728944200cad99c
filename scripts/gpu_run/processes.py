"""Runs a program to its end, or ends it, with all that it has started.

No call here waits without a limit, and none leaves a process behind that the
kernel lets die. Part of run_all.py. Python 3 standard library only.
"""

import collections
import ctypes
import os
import signal
import subprocess
import tempfile
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# After SIGTERM, for a launcher to end its tasks.
GRACE_S = 5.0
# After SIGKILL: who is inside a call of a driver (state D) does not die.
KILL_S = 5.0
# SIGCHLD wakes a wait at once where signals are taken; else this does.
LOOK_S = 0.2
# Of what a program printed, its beginning and its end.
END_BYTES = 200000

_LIBC = ctypes.CDLL(None, use_errno=True)

# code: as subprocess has it, None if it was ended or does not end; text: what
# it printed, without the middle if that is long; timed_out: it was ended;
# unkillable: some of it still runs.
Outcome = collections.namedtuple("Outcome", "code text timed_out unkillable")


class Interrupted(BaseException):
    """A signal that ends this program came while it waited. No Exception: who
    goes on after a part that failed does not go on after this."""

    def __init__(self, signum):
        super().__init__(signal.Signals(signum).name)
        self.signum = signum
        # What the program that was waited for had printed.
        self.output = ""


def _ending_signals():
    """Without those that nohup, or a shell, has switched off."""
    return {signum for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
            if signal.getsignal(signum) != signal.SIG_IGN}


def take_signals():
    """From now on a signal that would end this program raises Interrupted, in
    the next wait and nowhere else."""
    signal.pthread_sigmask(signal.SIG_BLOCK,
                           _ending_signals() | {signal.SIGCHLD})


def adopt_orphans():
    """From now on what a child has started and left becomes a child of this
    program, which can see it end. (A container's first process may be one that
    does not even look.)"""
    _LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wait(is_over, limit_s, more_signals=()):
    """Whether is_over() within the limit. Raises Interrupted if one of
    `more_signals` comes."""
    deadline = time.monotonic() + limit_s
    while not is_over():
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return False
        came = signal.sigtimedwait({signal.SIGCHLD, *more_signals},
                                   min(left_s, LOOK_S))
        if came is not None and came.si_signo != signal.SIGCHLD:
            raise Interrupted(came.si_signo)
    return True


class Child:
    """A program in a process group of its own, which dies with this one."""

    def __init__(self, command, output, environment=None, folder=None):
        """Prints to the file `output`. Raises OSError or SubprocessError if it
        cannot be started."""
        parent = os.getpid()
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True, env=environment,
            cwd=folder, preexec_fn=lambda: _before_exec(parent))

    def wait(self, limit_s):
        """Whether it has ended. Raises Interrupted."""
        return _wait(self._has_ended, limit_s, _ending_signals())

    def ask_to_end(self):
        """SIGTERM to the group, and time to follow it. Raises Interrupted."""
        self._signal(signal.SIGTERM)
        self.wait(GRACE_S)

    def end(self):
        """Kills what is left of its group. Returns whether nothing is left
        after KILL_S; is not interrupted."""
        # The leader, even dead, keeps the group's number until it is reaped.
        self._signal(signal.SIGKILL)
        if not _wait(self._has_ended, KILL_S):
            return False
        self._process.wait()
        return _wait(self._group_is_gone, KILL_S)

    def code(self):
        """After end()."""
        return self._process.returncode

    def _signal(self, signum):
        try:
            os.killpg(self._process.pid, signum)
        except (ProcessLookupError, PermissionError):
            pass

    def _has_ended(self):
        # Not poll(), which would reap it.
        return self._process.returncode is not None or os.waitid(
            os.P_PID, self._process.pid,
            os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _group_is_gone(self):
        # Orphans of the group are our children, by adopt_orphans().
        try:
            while os.waitpid(-self._process.pid, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return True
        return False


def _before_exec(parent):
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK,
                           _ending_signals() | {signal.SIGCHLD})


def run(command, limit_s, environment=None, folder=None):
    """Returns its Outcome. Raises OSError or SubprocessError if it cannot be
    started; Interrupted, with its output, when it has been killed."""
    with tempfile.TemporaryFile() as output:
        child = Child(command, output, environment, folder)
        timed_out = False
        try:
            timed_out = not child.wait(limit_s)
            if timed_out:
                child.ask_to_end()
        except Interrupted as stop:
            child.end()
            stop.output = ends_of(output)
            raise
        unkillable = not child.end()
        return Outcome(None if timed_out else child.code(), ends_of(output),
                       timed_out, unkillable)


def ends_of(file):
    """The text of a binary file: of a long one its first and its last
    END_BYTES."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= 2 * END_BYTES:
        return file.read(2 * END_BYTES).decode("utf-8", "replace")
    head = file.read(END_BYTES)
    file.seek(size - END_BYTES)
    return "%s\n[... %d bytes are left out ...]\n%s" % (
        head.decode("utf-8", "replace"), size - 2 * END_BYTES,
        file.read(END_BYTES).decode("utf-8", "replace"))


def output_of(command, limit_s):
    """What it printed, stripped; raises ValueError, with why, if it does not
    end well."""
    try:
        outcome = run(command, limit_s)
    except (OSError, subprocess.SubprocessError) as error:
        raise ValueError("cannot be started: %s" % error) from error
    if outcome.timed_out:
        raise ValueError("not done after %g s" % limit_s)
    if outcome.code != 0:
        raise ValueError("%s: %s" % (ending(outcome.code),
                                     outcome.text.strip()[-300:]))
    return outcome.text.strip()


def ending(code):
    """In words: of a code as subprocess has it, or None."""
    if code is None:
        return "no exit code"
    if code >= 0:
        return "exit code %d" % code
    try:
        return "killed by %s" % signal.Signals(-code).name
    except ValueError:
        return "killed by signal %d" % -code
