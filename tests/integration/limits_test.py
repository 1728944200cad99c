"""scripts/limits.py: what it finds too large, and what it does not count."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

METHODS = "".join(f"  int Method{i}(int a = {{}}) const;\n" for i in range(30))
CLASS = """
class Found : public Base {
 public:
  explicit Found(int a);
  struct Inner { int Public() { return 1; } };

 private:
  friend class Other;
  using Call = std::function<void(int)>;
  Found(const Found&) = delete;
%s
  // int Comment();
  std::function<void(int)> call_ = [](int) {};
  std::vector<int> member_{1, 2};
  int guarded_ ABSL_GUARDED_BY(mu_) = Value();
};
"""


def function(lines):
    return "int Long(\n    int a) {\n" + "  a += '}';\n" * (lines - 3) + "}\n"


class LimitsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def check(self, *flags):
        done = subprocess.run(
            [sys.executable, "scripts/limits.py", "--root", str(self.root),
             *flags], stdout=subprocess.PIPE, encoding="utf-8", check=False,
            timeout=60)
        clean = not done.stdout or "no subject is checked" in done.stdout
        self.assertEqual(done.returncode, 0 if clean else 1)
        return done.stdout

    def check_source(self, name, text):
        path = self.root / "worker" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return self.check()

    def git(self, *arguments):
        done = subprocess.run(
            ["git", "-C", str(self.root), "-c", "user.name=a", "-c",
             "user.email=a@b", *arguments],
            stdout=subprocess.PIPE, encoding="utf-8", check=True, timeout=60)
        return done.stdout.strip()

    def commit(self, subject):
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def test_a_file_of_501_lines_is_too_long_and_a_header_is_not(self):
        self.assertEqual(self.check_source("a.cc", "\n" * 500), "")
        self.assertEqual(self.check_source("a.h", "\n" * 501), "")
        self.assertIn("worker/b.cc: 501 lines, at most 500",
                      self.check_source("b.cc", "\n" * 501))

    def test_a_function_of_61_lines_is_too_long(self):
        self.assertEqual(self.check_source("a.cc", function(60)), "")
        self.assertIn("worker/a.cc:3: Long: 61 lines, at most 60",
                      self.check_source(
                          "a.cc", "namespace {\n\n" + function(61) + "}\n"))

    def test_a_method_in_its_class_is_a_function(self):
        self.assertIn("Long: 61 lines", self.check_source(
            "a.h", "class A {\n" + function(61) + "};\n"))

    def test_a_class_of_31_private_methods_has_too_many(self):
        self.assertEqual(self.check_source("a.h", CLASS % METHODS), "")
        more = METHODS + "  bool operator<(const Found& b) const { return 1; }"
        self.assertIn("worker/a.h:2: Found: 31 private methods, at most 30",
                      self.check_source("a.h", CLASS % more))

    def test_subjects_since_the_commit_are_short_and_say_what_they_do(self):
        self.git("init", "-q")
        self.commit("wip: before")
        since = self.commit("b" * 73)
        self.commit("c" * 72)
        self.commit("Wipe the memory of a session that ended")
        self.assertEqual(self.check("--since", since), "")
        self.commit("d" * 73)
        self.assertIn("73 characters, at most 72", self.check("--since", since))
        since = self.git("rev-parse", "HEAD")
        self.commit("WIP: more")
        self.assertIn("'WIP: more': not finished",
                      self.check("--since", since))

    def test_a_clone_without_the_commit_has_no_subject_checked(self):
        self.assertIn("has no commit 8fee9c36; no subject is checked",
                      self.check("--since", "8fee9c36"))
        self.git("init", "-q")
        self.commit("e" * 73)
        self.assertIn("has no commit 8fee9c36; no subject is checked",
                      self.check("--since", "8fee9c36"))


if __name__ == "__main__":
    unittest.main()
