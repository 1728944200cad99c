"""`muster certs`: what it makes, refuses, finds; and TLS between two tasks."""

import contextlib
import datetime
import io
import json
import os
import shutil
import socket
import ssl
import stat
import sys
import tempfile
import threading
import unittest
from unittest import mock

from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts"))
from base import cluster_file  # noqa: E402
from hosts import certs, certs_folder, openssl  # noqa: E402
from base.failure import Failure  # noqa: E402

CLUSTER = {"ps": ["127.0.0.1:2222"], "chief": ["[::1]:2223"],
           "worker": {"0": "h0.example.com:2222", "2": "10.0.0.3:2222"}}


def muster_certs(*arguments):
    """(exit code, all output)."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            code = certs.main(list(arguments))
        except SystemExit as exit_:
            code = exit_.code
    return code, output.getvalue()


class CertsTest(harness.TestCase):
    # Made once, for all tests: a folder with a folder of certificates.
    made = None

    def setUp(self):
        super().setUp()
        self.certs = self.path("certs")
        self.cluster = self.write("cluster.json",
                                  json.dumps({"cluster": CLUSTER}))

    def succeed(self, verb, *flags):
        code, output = muster_certs(verb, "--certs_dir=" + self.certs, *flags)
        self.assertEqual(code, 0, output)
        return output

    def test_keys_by_number_know_no_address(self):
        self.succeed("init")
        self.succeed("issue", "--ps=2", "--workers=1")
        listed = self.succeed("list")
        for stem in ("ps-0", "ps-1", "worker-0"):
            self.assertIn("spiffe://muster/job/%s/task/%s " % tuple(
                stem.split("-")), listed)
        self.succeed("verify", "--cluster=" + self.write("anywhere.json", (
            '{"ps": ["a:1", "b:1"], "worker": ["c:1"]}')))
        self.fail(2, ["wanted a task"], "issue", "--ps=0", "--workers=0")
        self.fail(2, ["--ps: the tasks of --cluster="], "issue", "--ps=2",
                  "--cluster=" + self.cluster)

    def fail(self, code, words, verb, *flags, certs_dir=None):
        found, output = muster_certs(
            verb, "--certs_dir=" + (certs_dir or self.certs), *flags)
        self.assertEqual(found, code, output)
        for word in words:
            self.assertIn(word, output)

    def init_and_issue(self):
        """Each test has a copy of the first one's."""
        if CertsTest.made is None:
            CertsTest.made = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
            unittest.addModuleCleanup(shutil.rmtree, CertsTest.made)
            at = "--certs_dir=" + os.path.join(CertsTest.made, "certs")
            muster_certs("init", at, "--name=c1")
            code, output = muster_certs("issue", at, "--cluster=" + self.cluster)
            self.assertEqual(code, 0, output)
        shutil.copytree(CertsTest.made, self.dir, symlinks=True,
                        dirs_exist_ok=True)

    def in_folder(self, name):
        return os.path.join(self.certs, name)

    def content(self, name):
        with open(self.in_folder(name), encoding="ascii") as file:
            return file.read()

    def test_each_task_has_its_role_and_all_its_addresses(self):
        self.succeed("init", "--name=c1")
        self.succeed("issue", "--cluster=" + self.cluster, "--days=30",
                     "--host=ps:0=h9.", "--host=ps:0=10.0.0.9")
        ps = openssl.read(self.in_folder("ps-0.pem"))
        self.assertEqual(ps.uris, ["spiffe://c1/job/ps/task/0"])
        self.assertEqual(ps.addresses, ["127.0.0.1", "h9", "10.0.0.9"])
        self.assertEqual((ps.not_after - openssl.now()).days, 29)
        chief = openssl.read(self.in_folder("chief-0.pem"))
        self.assertEqual(chief.addresses, ["::1"])
        self.assertEqual(openssl.read(self.in_folder("worker-2.pem")).uris,
                         ["spiffe://c1/job/worker/task/2"])
        self.assertEqual(openssl.read(self.in_folder("viewer.pem")).uris,
                         ["spiffe://c1/role/viewer"])
        self.assertIn("7 certificates, 0 complaints", self.succeed(
            "verify", "--cluster=" + self.cluster))
        self.assertIn("spiffe://c1/role/admin", self.succeed("list"))

    def test_a_name_with_a_final_dot_is_in_certificates_without_it(self):
        cluster = self.write("dots.json", '{"ps": ["a.example.:1"], '
                             '"worker": ["b.:1"]}')
        self.succeed("init", "--name=c1")
        self.succeed("issue", "--cluster=" + cluster)
        self.assertEqual(openssl.read(self.in_folder("ps-0.pem")).addresses,
                         ["a.example"])
        self.succeed("verify", "--cluster=" + cluster)

    def test_keys_are_their_owners_alone(self):
        self.init_and_issue()
        for name in os.listdir(self.certs):
            mode = stat.S_IMODE(os.stat(self.in_folder(name)).st_mode)
            self.assertEqual(mode, 0o600 if name.endswith(".key") else 0o644)

    def test_renew_changes_keys_and_keeps_names_and_authority(self):
        self.init_and_issue()
        keys = {name: self.content(name) for name in os.listdir(self.certs)}
        before = openssl.read(self.in_folder("worker-2.pem"))
        self.succeed("renew", "--days=3")
        after = openssl.read(self.in_folder("worker-2.pem"))
        self.assertEqual(after[:2], before[:2])
        self.assertLess(after.not_after, before.not_after)
        same = {name for name in keys if self.content(name) == keys[name]}
        self.assertEqual(same, {"ca.key", "ca.pem"})
        self.succeed("verify", "--cluster=" + self.cluster)

    def test_an_authority_that_others_can_use_signs_nothing(self):
        self.init_and_issue()
        before = self.content("ps-0.pem")
        os.chmod(self.in_folder("ca.key"), 0o644)
        for verb, *flags in (("issue", "--workers=1"), ("renew",)):
            self.fail(4, ["others can read", "ca.key (mode 0644)"], verb, *flags)
        self.assertEqual(self.content("ps-0.pem"), before)

    def test_issue_for_one_task_leaves_the_others(self):
        self.init_and_issue()
        ps, worker = self.content("ps-0.pem"), self.content("worker-0.pem")
        self.succeed("issue", "--cluster=" + self.cluster, "--task=worker:0",
                     "--task=evaluator:0")
        self.assertEqual(self.content("ps-0.pem"), ps)
        self.assertNotEqual(self.content("worker-0.pem"), worker)
        self.assertEqual(openssl.read(self.in_folder("evaluator-0.pem")).uris,
                         ["spiffe://c1/job/evaluator/task/0"])

    def test_a_change_that_fails_leaves_all_as_it_was(self):
        self.init_and_issue()
        before = os.readlink(self.certs), self.content("ps-0.pem")
        made = []

        def fails_at_the_second(*arguments):
            made.append(arguments)
            if len(made) == 2:
                raise Failure("no space", exit_code=1)
            return make_leaf(*arguments)

        make_leaf = openssl.make_leaf
        with mock.patch.object(openssl, "make_leaf", fails_at_the_second):
            self.fail(1, ["no space"], "renew")
        self.assertEqual((os.readlink(self.certs), self.content("ps-0.pem")),
                         before)
        self.assertEqual(sorted(os.listdir(self.dir)), sorted(
            ["cluster.json", "certs", before[0]]))

    def test_readers_see_the_old_files_until_all_new_ones_are_there(self):
        self.init_and_issue()
        with certs_folder.replaced(self.certs) as new:
            old = self.content("ps-0.pem")
            with open(os.path.join(new, "ps-0.pem"), "w",
                      encoding="ascii") as file:
                file.write("new")
            self.assertEqual(self.content("ps-0.pem"), old)
        self.assertEqual(self.content("ps-0.pem"), "new")

    def test_verify_finds_what_a_peer_would_refuse(self):
        self.init_and_issue()
        os.chmod(self.in_folder("ps-0.key"), 0o644)
        os.replace(self.in_folder("worker-2.key"),
                   self.in_folder("worker-0.key"))
        os.replace(self.in_folder("viewer.pem"), self.in_folder("admin.pem"))
        stranger = self.path("other")
        self.assertEqual(muster_certs("init", "--certs_dir=" + stranger)[0], 0)
        openssl.make_leaf(self.in_folder("chief-0"), "chief-0",
                          "spiffe://c1/job/chief/task/0", ["::1"], 9,
                          os.path.join(stranger, "ca"))
        moved = dict(CLUSTER, ps=["127.0.0.2:2222", "127.0.0.3:2222"])
        self.fail(4, ["ps-0: others can read", "mode 0644",
                      "worker-0: %s is the key of another" %
                      self.in_folder("worker-0.key"),
                      "worker-2: %s is missing" % self.in_folder(
                          "worker-2.key"),
                      "admin: wanted the one URI spiffe://c1/role/admin, found "
                      "spiffe://c1/role/viewer", "chief-0: openssl verify:",
                      "ps-0: not of its address 127.0.0.2, but of: 127.0.0.1",
                      "ps-1: %s is missing" % self.in_folder("ps-1.pem")],
                  "verify", "--cluster=" + self.write(
                      "moved.json", json.dumps(moved)))

    def test_verify_finds_what_has_ended(self):
        self.succeed("init")
        long_ago = openssl.now() - datetime.timedelta(days=20)
        with mock.patch.object(openssl, "now", lambda: long_ago):
            self.succeed("issue", "--cluster=" + self.cluster, "--days=10")
        self.fail(4, ["ps-0: openssl verify:", "certificate has expired"],
                  "verify")

    def test_mistakes_are_named_and_exit_with_2(self):
        self.fail(2, ["no ca.pem", "muster certs init"], "issue",
                  "--cluster=" + self.cluster)
        self.fail(2, ["--name=C/1"], "init", "--name=C/1")
        self.fail(2, ["wanted 1 to 3650 days"], "init", "--days=0")
        self.fail(2, ["--certs_dir"], "init", certs_dir=self.dir)
        self.succeed("init")
        self.fail(2, ["something already"], "init")
        for flags, words in (
                (["--task=ps:7"], ["--task=ps:7: no such task", "ps:0"]),
                (["--task=pss:0"], ["did you mean 'ps'?"]),
                (["--task=ps"], ["wanted JOB:INDEX"]),
                (["--host=ps:0=a b"], ["host name or an IP", "a b"]),
                (["--host=worker:1=a"], ["no such task"])):
            self.fail(2, words, "issue", "--cluster=" + self.cluster, *flags)
        self.fail(2, ["/nowhere"], "issue", "--cluster=/nowhere")
        self.assertEqual(muster_certs("init")[0], 2)
        self.assertEqual(muster_certs("sing")[0], 2)

    def test_mutual_tls_between_two_tasks(self):
        self.init_and_issue()
        contexts = []
        for purpose, name in ((ssl.PROTOCOL_TLS_SERVER, "ps-0"),
                              (ssl.PROTOCOL_TLS_CLIENT, "worker-2")):
            context = ssl.SSLContext(purpose)
            context.load_verify_locations(self.in_folder("ca.pem"))
            context.load_cert_chain(self.in_folder(name + ".pem"),
                                    self.in_folder(name + ".key"))
            context.verify_mode = ssl.CERT_REQUIRED
            contexts.append(context)
        server, client = socket.socketpair()
        seen = []

        def serve():
            with contexts[0].wrap_socket(server, server_side=True) as secured:
                seen.append(secured.getpeercert()["subjectAltName"][0])
                secured.recv(1)

        thread = threading.Thread(target=serve)
        thread.start()
        with contexts[1].wrap_socket(
                client, server_hostname="127.0.0.1") as secured:
            secured.send(b"x")
        thread.join()
        self.assertEqual(seen, [("URI", "spiffe://c1/job/worker/task/2")])


class ClusterFileTest(harness.TestCase):

    def test_each_form_gives_the_same_tasks(self):
        text = """
# as TensorFlow prints it
job { name: "ps" tasks { key: 0 value: "127.0.0.1:2222" } }
job { name: "master" tasks { key: 0 value: "[::1]:2223" } }
job { name: "worker" tasks { value: "h0.example.com:2222" }
      tasks { key: 2 value: "10.0.0.3:2222" } }
"""
        forms = [cluster_file.read(self.write("cluster", form)) for form in (
            text, json.dumps(CLUSTER), json.dumps({"cluster": CLUSTER}))]
        self.assertEqual(forms[0], forms[1])
        self.assertEqual(forms[0], forms[2])
        self.assertEqual(forms[0][cluster_file.Task("chief", 0)],
                         ("::1", 2223))

    def test_mistakes_name_the_place(self):
        for text, words in (
                ("{", "no JSON"), ("{}", "no tasks"), ("", "no tasks"),
                ('{"pss": ["a:1"]}', "did you mean 'ps'?"),
                ('{"ps": ["a"]}', "ps:0: wanted host:port, found 'a'"),
                ('{"ps": ["a:0"]}', "ps:0: wanted host:port"),
                ('{"ps": ["::1:5"]}', "ps:0: wanted host:port"),
                ('{"ps": ["1.2.3:5"]}', "wanted a host name"),
                ('{"ps": {"x": "a:1"}}', "wanted indices"),
                ('{"ps": "a:1"}', "wanted a list"),
                ('{"cluster": 1}', "wanted jobs"),
                ('{"chief": ["a:1"], "master": ["b:1"]}', "chief:0 is there "
                 "twice"),
                ('job { name: "ps" tasks { key: x value: "a:1" } }',
                 "key: wanted an index"),
                ('job { name "ps" ; }', "line 1: cannot read ';"),
                ('job: 3', "wanted job {"), ('job {', "no tasks")):
            path = self.write("cluster", text)
            with self.assertRaises(Failure, msg=text) as caught:
                cluster_file.read(path)
            self.assertIn(words, str(caught.exception))
            self.assertIn(path, str(caught.exception))


if __name__ == "__main__":
    harness.main()
