"""_words.py: flags become arguments."""

import unittest

from muster._words import in_arguments
from tests.integration import harness


class WordsTest(unittest.TestCase):

    def test_flags_become_arguments(self):
        for words, wanted in (
                ("wanted --task_index=any, or a number: --task_index=0 for",
                 'wanted task_index="any", or a number: task_index=0 for'),
                ('"worker": "any" (--worker_hosts=any)',
                 '"worker": "any" (workers="any")'),
                ("--cluster=c.json and --ps_hosts and --worker_hosts disagree",
                 "cluster=c.json and ps= and workers= disagree"),
                ("give --cluster=FILE, or TF_CONFIG",
                 "give cluster=, or TF_CONFIG"),
                ("for ps 0 (--max_wait)", "for ps 0 (max_wait=)"),
                ("give --certs_dir, or --allow_insecure_network",
                 "give certs_dir=, or allow_insecure_network="),
                ("another process (pid 3) writes into it; choose another "
                 "--train_dir",
                 "another process (pid 3) writes into it; choose another "
                 "train_dir=, or, if that one is this job's chief, give this "
                 'worker task_index="any"'),
                ("the rate differs; start all tasks with one training file and "
                 "the same data",
                 "the rate differs; start all workers with one program and the "
                 "same arguments"),
                ("step_rows is 64, wanted 1 to the 40 of epoch_rows",
                 "batch_size is 64, wanted 1 to the 40 rows of the data set")):
            with self.subTest(words):
                self.assertEqual(in_arguments(words), wanted)

    def test_other_words_stay(self):
        for words in ("see --ps_hosts_file", "cluster and --clusters", "a - b"):
            self.assertEqual(in_arguments(words), words)


if __name__ == "__main__":
    harness.main()
