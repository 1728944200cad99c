"""_job.py over a fake of libmuster: steps, ends, signals, wrong calls."""

import math
import os
import signal
import threading
import unittest

import muster
import numpy
from muster import _job
from tests.integration import harness
from tests.worker.python import fake_library


class TestCase(unittest.TestCase):

    def setUp(self):
        self.library = fake_library.use(fake_library.FakeLibrary(), self)
        self.library.shapes = [(2,)]
        self.w = numpy.array([5, 6], numpy.float32)
        self.addCleanup(self.abandon)

    def abandon(self):
        job = _job.current()
        if job is not None:
            job.abandon()

    def job(self, **arguments):
        return muster.init(ps="h:1", **arguments)

    def started(self, **arguments):
        job = self.job(**arguments)
        job.start([("w", (2,), False, self.w)], ("sgd", {}))
        return job

    def stepping(self, **arguments):
        job = self.started(**arguments)
        job.await_step()
        return job


class JobTest(TestCase):

    def test_knows_its_place_without_being_started(self):
        self.library.task.update(index=1, is_chief=0, num_ps=3)
        job = self.job(task_index=1, cluster="c.json")
        self.assertIn('task_index: "1"', self.library.spec)
        self.assertEqual((job.index, job.is_chief, job.num_ps, job.num_workers),
                         (1, False, 3, 2))
        self.assertFalse(job.is_started or job.done)

    def test_what_workers_must_have_alike_is_said_at_the_start(self):
        self.job().start([("w", (2,), False, self.w)], ("sgd", {}),
                         alike="decay=1")
        self.assertIn('settings: "decay=1"', self.library.spec)

    def test_what_has_come_last_is_received_when_all_is_done(self):
        job = self.stepping()
        received = []
        job.receiver = lambda: received.append(self.w.tolist())
        job.finish()
        self.assertEqual(received, [self.w.tolist()])

    def test_gradients_come_from_their_memory_values_into_theirs(self):
        job = self.started()
        while job.await_step() is not None:
            job.push([numpy.ones(2, numpy.float32)], loss=0.5, examples=4)
        self.assertEqual(self.w.tolist(), [2, 3])
        self.assertEqual(self.library.reports, [(0.5, 4, -1, 1.0)] * 3)
        self.assertTrue(job.done)

    def test_an_address_is_as_good_as_an_array(self):
        job = self.job()
        gradient = numpy.ones(2, numpy.float32)
        job.start([("w", (2,), False, self.w.ctypes.data)], ("sgd", {}))
        job.await_step()
        job.push([gradient.ctypes.data])
        job.await_step()
        job.push([None])
        self.assertEqual(self.w.tolist(), [4, 5])
        self.assertEqual(self.library.pushed[1], [None])

    def test_a_step_says_what_became_of_the_one_before(self):
        job = self.started()
        step = job.await_step()
        self.assertEqual(step, (1, 10, 0, 1, 0.5, False))
        self.assertEqual((job.step, job.global_step, job.staleness),
                         (1, 10, 0.5))
        # The same one until it is pushed.
        self.assertEqual(job.await_step().step, 1)

    def test_rows_are_those_of_the_lease(self):
        self.library.rows = [[4, 2, 7], [1]]
        job = self.job()
        job.start([("w", (2,), False, self.w)], ("sgd", {}), epoch_rows=8,
                  step_rows=3, epochs=2)
        self.assertIn("stop { epochs: 2 }", self.library.spec)
        job.await_step()
        rows, epoch = job.rows()
        self.assertEqual((rows.tolist(), rows.dtype, epoch),
                         ([4, 2, 7], numpy.int64, 2))
        self.assertEqual(job.epoch, 2)
        self.assertIsNone(job.rows(1))
        job.push([None])
        job.await_step()
        self.assertEqual(job.rows()[0].tolist(), [1])

    def test_a_loss_that_was_logged_is_the_next_pushs(self):
        job = self.stepping()
        job.log(loss=0.25, accuracy=1)
        self.assertIn(("log", "accuracy", 1.0), self.library.calls)
        for _ in range(2):
            job.push([None])
            job.await_step()
        losses = [report[0] for report in self.library.reports]
        self.assertEqual(losses[0], 0.25)
        self.assertTrue(math.isnan(losses[1]))

    def test_finish_stops_and_closes_once(self):
        job = self.stepping()
        job.finish()
        job.finish()
        self.assertEqual(self.library.calls[-2:], [("stop", 0), ("close",)])
        self.assertIsNone(_job.current())

    def test_a_block_finishes_or_leaves(self):
        with self.stepping():
            pass
        self.assertEqual(self.library.stopped_by, 0)
        library = fake_library.use(fake_library.FakeLibrary(), self)
        handler = signal.getsignal(signal.SIGINT)
        with self.assertRaises(ZeroDivisionError), self.stepping():
            1 / 0  # pylint: disable=pointless-statement
        # Nobody has pressed Ctrl-C.
        self.assertEqual(library.stopped_by, signal.SIGTERM)
        self.assertTrue(library.is_closed)
        self.assertIs(signal.getsignal(signal.SIGINT), handler)
        library = fake_library.use(fake_library.FakeLibrary(), self)
        with self.assertRaises(KeyboardInterrupt), self.stepping():
            raise KeyboardInterrupt
        self.assertEqual(library.stopped_by, signal.SIGINT)

    def test_an_end_by_others_during_a_step_is_no_error(self):
        job = self.stepping()
        self.library.failures["push"] = 1
        self.library.stopped_by = 0
        job.push([None])
        self.assertTrue(job.done)
        self.assertIsNone(job.await_step())
        job.push([None])

    def test_a_job_that_was_over_before_any_value_is_no_model(self):
        self.library.steps = 0
        job = self.started(train_dir="run1")
        with self.assertRaisesRegex(
                muster.JobOver, r"ps='h:1' was over.*initial ones.*"
                r"muster.load\(train_dir\)") as caught:
            job.await_step()
        self.assertEqual(caught.exception.exit_code, 0)
        self.assertTrue(job.done)
        job.finish()
        self.assertIsNone(_job.current())

    def test_a_job_that_was_over_with_values_is_done(self):
        self.library.steps = 0
        self.library.has_values = True
        job = self.started()
        self.assertIsNone(job.await_step())
        self.assertTrue(job.done)
        job.finish()

    def test_last_values_that_are_not_here_are_no_model(self):
        self.library.has_values = False
        job = self.stepping()
        with self.assertRaisesRegex(muster.JobOver, "could not be read here"):
            job.finish()
        self.assertIsNone(_job.current())

    def test_finish_without_a_step_wants_no_values(self):
        self.library.steps = 0
        self.started().finish()

    def test_what_ends_the_job_is_raised_by_its_exit_code(self):
        for code, kind in ((1, muster.Error), (2, muster.ConfigError),
                           (3, muster.CheckpointError),
                           (4, muster.SecurityError),
                           (138, muster.UnavailableError)):
            with self.subTest(code):
                fake_library.use(fake_library.FakeLibrary(
                    steps=0, exit_code=code, words="ps 0 is away"), self)
                job = self.started()
                with self.assertRaisesRegex(kind, "ps 0 is away") as caught:
                    job.await_step()
                self.assertIs(type(caught.exception), kind)
                self.assertEqual(caught.exception.exit_code, code)
                job.finish()


class SignalTest(TestCase):

    def test_sigterm_drains_and_finish_says_so(self):
        job = self.stepping()
        os.kill(os.getpid(), signal.SIGTERM)
        # As `timeout` does.
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(self.library.calls[-1], ("stop", signal.SIGTERM))
        job.push([None])
        self.assertIsNone(job.await_step())
        self.assertTrue(job.done)
        with self.assertRaises(SystemExit) as caught:
            job.finish()
        self.assertEqual(caught.exception.code, 143)

    def test_sigterm_before_the_start_ends_the_program(self):
        self.job()
        with self.assertRaises(SystemExit) as caught:
            os.kill(os.getpid(), signal.SIGTERM)
        self.assertEqual(caught.exception.code, 143)

    def test_sigterm_before_the_first_step_ends_the_program(self):
        job = self.started()
        os.kill(os.getpid(), signal.SIGTERM)
        with self.assertRaises(SystemExit) as caught:
            job.await_step()
        self.assertEqual(caught.exception.code, 143)
        self.assertIsNone(_job.current())

    def test_a_job_that_is_left_after_sigterm_is_not_stopped_again(self):
        job = self.stepping()
        os.kill(os.getpid(), signal.SIGTERM)
        job.abandon()
        self.assertEqual(self.library.calls[-2:],
                         [("stop", signal.SIGTERM), ("close",)])

    def test_a_later_sigterm_kills(self):
        child = os.fork()
        if child == 0:
            try:
                # A job of its own.
                job = self.stepping()
                os.kill(os.getpid(), signal.SIGTERM)
                job._sigterm._came_at -= 1
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
                         -signal.SIGTERM)

    def test_sigterm_ends_a_child_as_ever(self):
        self.stepping()
        child = os.fork()
        if child == 0:
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
                         -signal.SIGTERM)

    def test_a_handler_of_the_program_stays(self):
        def handler(number, frame):
            del number, frame
        self.addCleanup(signal.signal, signal.SIGTERM,
                        signal.signal(signal.SIGTERM, handler))
        self.job()
        self.assertIs(signal.getsignal(signal.SIGTERM), handler)

    def test_the_default_comes_back_with_the_end(self):
        job = self.job()
        self.assertNotEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)
        job.finish()
        self.assertEqual(signal.getsignal(signal.SIGTERM), signal.SIG_DFL)


class WrongCallTest(TestCase):

    def assert_refused(self, pattern, call, *arguments, **named):
        with self.assertRaisesRegex(muster.ConfigError, pattern):
            call(*arguments, **named)

    def test_a_second_job_is_refused(self):
        self.job()
        self.assert_refused("has a job already.*finish", self.job)

    def test_a_job_after_another_is_well(self):
        self.job().finish()
        self.job()

    def test_what_libmuster_refuses_is_raised_by_its_kind(self):
        self.library.failures["resolve"] = 3
        self.library.words = "other machines without keys"
        with self.assertRaisesRegex(muster.SecurityError, "without keys"):
            self.job()
        self.library.failures["start"] = 1
        self.assert_refused("without keys", self.started)

    def test_words_of_flags_come_as_words_of_arguments(self):
        self.library.failures["resolve"] = 1
        self.library.words = "give --ps_hosts and --worker_hosts"
        self.assert_refused("give ps= and workers=", self.job)
        fake_library.use(fake_library.FakeLibrary(
            steps=0, exit_code=138, words="no ps (--max_wait)"), self)
        with self.assertRaisesRegex(muster.UnavailableError, "(max_wait=)"):
            self.started().await_step()

    def test_a_parameter_that_cannot_be_trained_is_refused_by_name(self):
        frozen = numpy.zeros((2, 3), numpy.float32)
        frozen.setflags(write=False)
        for array, pattern in (
                (numpy.zeros((2, 3)), "'w': wanted float32, found float64"),
                (numpy.zeros((2, 3), ">f4"), "'w': wanted float32, found >f4"),
                (numpy.zeros((3, 2), numpy.float32).T, "contiguous"),
                (numpy.zeros((3, 2), numpy.float32), r"shape \[2, 3\], found "
                 r"\[3, 2\]"),
                (frozen, "cannot be written"),
                ([[1.0] * 3] * 2, "wanted a numpy array, found list")):
            with self.subTest(pattern):
                self.abandon()
                self.assert_refused(pattern, self.job().start,
                                    [("w", (2, 3), False, array)], ("sgd", {}))

    def test_a_parameter_twice_is_refused(self):
        self.assert_refused("two parameters are called 'w'", self.job().start,
                            [("w", (2,), False, self.w)] * 2, ("sgd", {}))
        self.abandon()
        self.assert_refused("no parameter", self.job().start, [], ("sgd", {}))

    def test_other_gradients_are_refused(self):
        job = self.stepping()
        for gradient, pattern in (
                (numpy.zeros(3, numpy.float32), r"gradient of 'w': wanted the "
                 r"shape \[2\], found \[3\]"),
                (numpy.zeros(2, int), "gradient of 'w': wanted float32")):
            self.assert_refused(pattern, job.push, [gradient])
        self.assert_refused("of 1 parameters, found 2", job.push, [None, None])
        # It may be mended.
        job.push([None])

    def test_what_libmuster_refuses_of_a_push_is_raised(self):
        job = self.stepping()
        self.library.failures["push"] = 1
        self.library.words = "the factor is -1"
        self.assert_refused("the factor is -1", job.push, [None])

    def test_a_push_before_a_step_is_refused(self):
        self.assert_refused("has no parameters yet", self.job().push, [None])
        self.abandon()
        self.assert_refused(r"await_step\(\) first", self.started().push,
                            [None])

    def test_a_second_start_is_refused(self):
        self.assert_refused("started before", self.started().start,
                            [("w", (2,), False, self.w)], ("sgd", {}))

    def test_another_number_of_epochs_is_refused(self):
        self.assert_refused("epochs=2, but .* epochs=3", self.job(
            epochs=2).start, [("w", (2,), False, self.w)], ("sgd", {}),
                            epochs=3)

    def test_use_after_finish_is_refused(self):
        job = self.stepping()
        job.finish()
        for call in (job.await_step, job.save, job.rows):
            self.assert_refused(r"after finish\(\)", call)
        self.assert_refused(r"after finish\(\)", job.push, [None])

    def test_a_figure_that_is_no_number_is_refused(self):
        self.assert_refused(r"log\(loss=", self.job().log, loss="low")

    def test_another_thread_is_refused(self):
        job = self.stepping()
        found = []

        def call():
            try:
                job.await_step()
            except muster.ConfigError as error:
                found.append(str(error))
            job.log(accuracy=1.0)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        self.assertRegex(found[0], "another thread")
        self.assertIn(("log", "accuracy", 1.0), self.library.calls)

    def test_a_forked_child_is_refused(self):
        job = self.stepping()
        calls = (job.await_step, job.save, job.rows, job.finish,
                 lambda: job.push([None]), lambda: job.log(loss=1.0))
        child = os.fork()
        if child == 0:
            refused = 0
            for call in calls:
                try:
                    call()
                except muster.ForkedError:
                    refused += 1
            # A job of its own is the library's matter.
            os._exit(refused if _job.current() is None else 0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
                         len(calls))


if __name__ == "__main__":
    harness.main()
