"""muster.local: ps tasks and workers on this machine."""

import ctypes
import json
import multiprocessing
import multiprocessing.connection
import os
import pickle
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import traceback
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Type

from muster import _job
from muster._ends import say
from muster._errors import ConfigError, Error, JobOver, UnavailableError
from muster._programs import path_of

# Below Linux's range for outgoing connections (32768 and up), so that none of
# them takes a port between our choice and the task's start.
_PORTS = range(20000, 32000)
_PR_SET_PDEATHSIG = 1
# For a worker to save and leave, before it is killed.
_GRACE_S = 10.0
# Of a ps task that has failed.
_TAIL_LINES = 5


class WorkerTraceback(Exception):
    """What a worker has said of its exception; the cause of that which `run`
    raises."""

    def __str__(self) -> str:
        return "\n\n%s" % self.args[0]


def _die_with_parent(parent: int) -> None:
    """Runs in a new child."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


class _SignalsHeld:
    """Those that end a program come after the block: one in the middle of a
    task's start would leave the task running, unknown to all."""

    def __enter__(self) -> "_SignalsHeld":
        self._before = signal.pthread_sigmask(
            signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        return self

    def __exit__(self, *_: Any) -> None:
        self.release()

    def release(self) -> None:
        """Called by the new task, too, which inherits the block."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)


def _free_addresses(count: int) -> List[str]:
    """Of loopback, on whose ports nobody listens."""
    found: List[str] = []
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append("127.0.0.1:%d" % port)
        if len(found) == count:
            return found
    raise UnavailableError("local: no free ports from %d to %d" %
                           (_PORTS[0], _PORTS[-1]))


def _outcome(function: Callable[..., Any], args: Any, kwargs: Any) -> bytes:
    """Pickled: (result, None, ""), or (None, exception or None, traceback)."""
    try:
        result = function(*args, **kwargs)
        job = _job.current()
        if job is not None:
            job.finish()
        return pickle.dumps((result, None, ""))
    except JobOver as error:
        say(str(error))
        return pickle.dumps((None, None, ""))
    except BaseException as error:  # pylint: disable=broad-except
        text = traceback.format_exc()
        job = _job.current()
        if job is not None:
            job.abandon(type(error))
        try:
            outcome = pickle.dumps((None, error, text))
            pickle.loads(outcome)
            return outcome
        except Exception:  # pylint: disable=broad-except
            return pickle.dumps((None, None, text))


def _work(index: int, cluster: str, parent: int, held: _SignalsHeld,
          results: Any, function: Callable[..., Any], args: Any,
          kwargs: Any) -> None:
    """A worker, in a child of its own, in which libmuster has no thread yet."""
    # So that Ctrl-C comes to the parent alone, which ends all.
    os.setsid()
    held.release()
    _die_with_parent(parent)
    for name in [name for name in os.environ
                 if name.startswith("MUSTER_") or name == "TF_CONFIG"]:
        del os.environ[name]
    os.environ.update(MUSTER_CLUSTER=cluster, MUSTER_JOB_NAME="worker",
                      MUSTER_TASK_INDEX=str(index))
    results.send_bytes(_outcome(function, args, kwargs))
    results.close()


class _Worker:
    """A worker, and the end of its pipe from which the result comes."""

    def __init__(self, index: int, cluster: str, held: _SignalsHeld,
                 function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        context = multiprocessing.get_context("fork")
        self.results, theirs = context.Pipe(duplex=False)
        self.process = context.Process(
            target=_work, name="muster worker %d" % index,
            args=(index, cluster, os.getpid(), held, theirs, function, args,
                  kwargs))
        self.process.start()
        theirs.close()
        self.index = index

    def result(self) -> Any:
        """Once the pipe can be read. Raises what the worker has raised."""
        try:
            result, error, text = pickle.loads(self.results.recv_bytes())
        except EOFError:
            self.process.join()
            raise Error("local: worker %d has ended without a result, exit "
                        "code %s" % (self.index, self.process.exitcode)
                        ) from None
        if not text:
            return result
        cause = WorkerTraceback("worker %d: %s" % (self.index, text))
        if isinstance(error, Exception):
            raise error from cause
        raise Error("local: worker %d has failed" % self.index) from cause


class local:  # pylint: disable=invalid-name
    """ps tasks and workers on this machine, on free ports of loopback: for
    notebooks and tests.

        with muster.local(ps=1, workers=2) as cluster:
            results = cluster.run(train, "run1")    # of each worker

    In a worker `muster.init` and `muster.Model` find the cluster by themselves;
    worker 0 is the chief. This process itself never has a job.
    """

    def __init__(self, ps: int = 1, workers: int = 2) -> None:
        """The numbers of both, 1 or more. Errors: ConfigError."""
        for name, value in (("ps", ps), ("workers", workers)):
            if not hasattr(value, "__index__") or value < 1:
                raise ConfigError("local(%s=%r): wanted 1 or more" %
                                  (name, value))
        self._num_ps = ps
        self._num_workers = workers
        self._folder: Optional[str] = None
        self._ps: List["subprocess.Popen[bytes]"] = []
        self._workers: List[_Worker] = []

    def __enter__(self) -> "local":
        self._folder = tempfile.mkdtemp(prefix="muster-")
        return self

    def __exit__(self, kind: Optional[Type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._end()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def run(self, function: Callable[..., Any], *args: Any,
            **kwargs: Any) -> List[Any]:
        """One job: calls `function` in each worker, a process forked from this
        one. Returns what they return, which pickle can write, by their index;
        None of a worker that came when the others had done all (JobOver).

        A worker that fails ends the others. Nothing is left running, also after
        Ctrl-C: workers then save and leave.

        Raises:
          Exception: that of the first worker that has failed; its cause is a
            WorkerTraceback.
          Error: a task was killed, or has failed otherwise.
          ConfigError: this process has a job of its own; outside `with`.
        """
        if self._folder is None:
            raise ConfigError("run: outside `with muster.local(...)`, so that "
                              "nobody would end the tasks")
        if _job.current() is not None:
            raise ConfigError("run: this process has a job of its own, and a "
                              "fork would not: finish() it first, or use "
                              "another process")
        addresses = _free_addresses(self._num_ps + self._num_workers)
        cluster = os.path.join(self._folder, "cluster.json")
        with open(cluster, "w", encoding="utf-8") as file:
            json.dump({"ps": addresses[:self._num_ps],
                       "worker": addresses[self._num_ps:]}, file)
        try:
            for index in range(self._num_ps):
                with _SignalsHeld() as held:
                    self._ps.append(self._start_ps(index, cluster, held))
            for index in range(self._num_workers):
                with _SignalsHeld() as held:
                    self._workers.append(_Worker(index, cluster, held, function,
                                                 args, kwargs))
            return self._collect()
        finally:
            self._end()

    def _log(self, index: int) -> str:
        return os.path.join(str(self._folder), "ps-%d.log" % index)

    def _start_ps(self, index: int, cluster: str,
                  held: _SignalsHeld) -> "subprocess.Popen[bytes]":
        parent = os.getpid()

        def prepare() -> None:
            held.release()
            _die_with_parent(parent)

        environment = {name: value for name, value in os.environ.items()
                       if name != "TF_CONFIG"}
        with open(self._log(index), "wb") as log:
            return subprocess.Popen(
                [path_of("ps_server"), "--cluster=" + cluster,
                 "--task_index=%d" % index],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment, start_new_session=True,
                preexec_fn=prepare)

    def _collect(self) -> List[Any]:
        """The results of all, as they come."""
        results: Dict[int, Any] = {}
        ends = {os.pidfd_open(ps.pid): index
                for index, ps in enumerate(self._ps)}
        try:
            while len(results) < len(self._workers):
                waited: Dict[Any, _Worker] = {
                    worker.results: worker for worker in self._workers
                    if worker.index not in results}
                for ready in multiprocessing.connection.wait([*waited, *ends]):
                    if isinstance(ready, int):
                        self._check_ps(ends.pop(ready))
                        os.close(ready)
                    else:
                        worker = waited[ready]
                        results[worker.index] = worker.result()
        finally:
            for descriptor in ends:
                os.close(descriptor)
        return [results[index] for index in range(len(self._workers))]

    def _check_ps(self, index: int) -> None:
        """One has ended: with its job, or not."""
        exit_code = self._ps[index].wait()
        if exit_code == 0:
            return
        with open(self._log(index), encoding="utf-8",
                  errors="replace") as file:
            tail = file.read().splitlines()[-_TAIL_LINES:]
        raise UnavailableError("local: ps %d has ended with exit code %d:\n%s" %
                               (index, exit_code, "\n".join(tail)))

    def _end(self) -> None:
        """No task is left."""
        processes = [worker.process for worker in self._workers]
        for process in processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + _GRACE_S
        try:
            for process in processes:
                process.join(max(0.0, deadline - time.monotonic()))
        finally:
            for worker in self._workers:
                worker.process.kill()
                worker.process.join()
                worker.results.close()
            for ps in self._ps:
                ps.kill()
                ps.wait()
            self._workers, self._ps = [], []
