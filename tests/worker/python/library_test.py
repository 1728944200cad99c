"""_library.py and _errors.py: what is loaded, versions, exit codes of whole
programs."""

import ctypes.util
import os
import re
import signal
import subprocess
import sys
import unittest
from unittest import mock

import muster
from muster import _errors, _library
from tests.integration import harness
from tests.worker.python import fake_library

C_TYPES = {"char": ctypes.c_char, "double": ctypes.c_double,
           "const char*": ctypes.c_char_p,
           "const int64_t*": ctypes.POINTER(ctypes.c_int64),
           "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64}
# A program over the fake; its test says what it does with `library`.
PROGRAM = """
import atexit, os, signal, sys
import muster, numpy
from muster import _library
from tests.worker.python import fake_library
library = fake_library.FakeLibrary()
atexit.register(lambda: print("stopped by", library.stopped_by, flush=True))
_library.use(library)
w = numpy.zeros(1, numpy.float32)
"""


class LibraryTest(unittest.TestCase):

    def test_another_version_is_refused_with_both(self):
        library = fake_library.FakeLibrary()
        library.abi = 7
        with self.assertRaisesRegex(
                muster.ConfigError, r"\(0.1.0\) has version 7 .* written for "
                "version 4: install"):
            _library.use(library)

    def test_a_missing_library_is_refused_with_its_folder(self):
        with mock.patch.object(os.path, "exists", return_value=False):
            with self.assertRaisesRegex(muster.ConfigError,
                                        "not in '.*muster'.*wheel"):
                _library.load()

    def test_what_is_no_library_of_ours_is_refused(self):
        path = ctypes.util.find_library("c")
        with self.assertRaisesRegex(muster.ConfigError, "muster_version"):
            _library._open(path)
        with self.assertRaisesRegex(muster.ConfigError, "loading '/none'"):
            _library._open("/none")

    def test_structures_are_those_of_the_header(self):
        with open(harness.binary("worker/python/muster.h"),
                  encoding="utf-8") as file:
            header = file.read()
        for name, structure in (("step", _library.Step),
                                ("report", _library.Report),
                                ("task", _library.Task),
                                ("tensor", _library.Tensor)):
            begin = header.index("typedef struct muster_%s {" % name)
            end = header.index("} muster_%s;" % name)
            fields = re.findall(r"^  ((?:const )?\w+\*?) (\w+)(?:\[(\d+)\])?;",
                                header[begin:end], re.MULTILINE)
            self.assertEqual(structure._fields_, [
                (field, C_TYPES[kind] * int(size) if size else C_TYPES[kind])
                for kind, field, size in fields])
        for name in _library._FUNCTIONS:
            self.assertIn(name + "(", header)
        self.assertIn("#define MUSTER_ABI %d\n" % _library.ABI, header)

    def test_kinds_of_errors_are_those_of_the_header(self):
        for kind, error in ((1, muster.ConfigError),
                            (2, muster.CheckpointError),
                            (3, muster.SecurityError),
                            (4, muster.UnavailableError), (5, muster.Error),
                            (6, muster.ForkedError)):
            found = _errors.of_kind(kind, "why")
            self.assertIs(type(found), error)
            self.assertEqual(str(found), "why")


class ProgramTest(unittest.TestCase):

    def run_program(self, text):
        return subprocess.run([sys.executable, "-c", PROGRAM + text],
                              capture_output=True, text=True, check=False)

    def test_an_uncaught_error_is_the_exit_code(self):
        for name, code in (("Error", 1), ("ConfigError", 2),
                           ("SecurityError", 4), ("UnavailableError", 138)):
            with self.subTest(name):
                done = self.run_program(
                    'muster.init(ps="h:1")\nraise muster.%s("why")' % name)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn("Traceback", done.stderr)
                self.assertIn("%s: why" % name, done.stderr)
                self.assertIn("stopped by None", done.stdout)

    def test_an_uncaught_error_of_init_itself_is_the_exit_code(self):
        for kind, code in ((1, 2), (3, 4)):
            done = self.run_program('library.failures["resolve"] = %d\n'
                                    'muster.init(ps="h:1")' % kind)
            self.assertEqual(done.returncode, code, done.stderr)
        done = self.run_program('muster.Model({"w": w}, ps="h:1", rows=3)')
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_a_job_that_was_over_is_no_failure_and_told(self):
        done = self.run_program(
            'library.steps = 0\nmuster.Model({"w": w}, ps="h:1")\nprint("on")')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("muster.JobOver: the job on ps='h:1' was over",
                      done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        self.assertNotIn("on\n", done.stdout)

    def test_another_exception_leaves_the_job(self):
        done = self.run_program(
            'muster.Model({"w": w}, ps="h:1")\nraise ValueError("why")')
        self.assertEqual(done.returncode, 1)
        self.assertIn("ValueError: why", done.stderr)
        self.assertIn("leaves the job because of ValueError\n", done.stderr)
        self.assertIn("stopped by 15\n", done.stdout)

    def test_a_program_that_ends_without_finish_leaves_the_job(self):
        done = self.run_program(
            'muster.Model({"w": w}, ps="h:1")\nsys.exit(7)')
        self.assertEqual(done.returncode, 7)
        self.assertIn("which the program has not finished\n", done.stderr)
        self.assertIn("stopped by 15\n", done.stdout)

    def test_ctrl_c_ends_a_wait_and_leaves_the_job(self):
        done = self.run_program("""
def interrupt(job, timeout_ms, step):
    os.kill(os.getpid(), signal.SIGINT)
    return _library.WAITING
library.muster_await = interrupt
muster.Model({"w": w}, ps="h:1")
""")
        self.assertEqual(done.returncode, -signal.SIGINT, done.stderr)
        self.assertIn("stopped by 2\n", done.stdout)

    def test_a_program_after_sigterm_has_its_code(self):
        done = self.run_program("""
with muster.Model({"w": w}, ps="h:1", task_index=0) as model:
    os.kill(os.getpid(), signal.SIGTERM)
    while not model.done:
        model.push_pull({"w": None})
""")
        self.assertEqual(done.returncode, 143, done.stderr)
        self.assertEqual(done.stderr, "")
        self.assertIn("stopped by 15\n", done.stdout)

    def test_a_program_after_sigterm_has_its_code_without_finish_too(self):
        for end, code in (("", 143), ("model.push_pull({'w': None})", 143),
                          ("raise ValueError", 1)):
            with self.subTest(end):
                done = self.run_program("""
model = muster.Model({"w": w}, ps="h:1", task_index=0)
os.kill(os.getpid(), signal.SIGTERM)
print("an unflushed line", end="")
""" + end)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn("stopped by 15\n", done.stdout)
                self.assertIn("an unflushed line", done.stdout)


class PackagedProgramTest(unittest.TestCase):

    def run_module(self, *arguments):
        return subprocess.run([sys.executable, "-m", "muster", *arguments],
                              capture_output=True, text=True, check=False)

    def test_a_mistake_is_refused_with_what_there_is(self):
        for arguments, pattern in (((), "found nothing"),
                                   (("server",), "found 'server'"),
                                   (("ps",), "no program '.*bin/ps_server'")):
            done = self.run_module(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, pattern)

    def test_help_names_both(self):
        done = self.run_module("--help")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, "muster ps(.|\n)*muster ctl")


if __name__ == "__main__":
    harness.main()
