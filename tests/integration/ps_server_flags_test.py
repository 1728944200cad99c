"""What ps_server says to good and bad command lines, and how it exits."""

import json
import os
import signal
import socket
import subprocess

from tests.integration import harness

# A documentation network (RFC 5737): never a machine's own.
FOREIGN_ADDRESS = "198.51.100.7:2222"


class PsServerFlagsTest(harness.TestCase):

    def run_ps(self, *flags, env=None):
        # The environment of whoever runs the tests must not name a cluster.
        clean = {key: value for key, value in os.environ.items()
                 if key != "TF_CONFIG"}
        clean.update(env or {})
        return self.run_to_end("ps_server", [harness.ps_server(), *flags],
                               env=clean)

    def assert_refused(self, *flags, says=(), exit_code=2, env=None):
        code, output = self.run_ps(*flags, env=env)
        self.assertEqual(code, exit_code, output)
        for text in says:
            self.assertIn(text, output)

    def test_help_lists_flags_and_exits_with_0(self):
        code, output = self.run_ps("--help")
        self.assertEqual(code, 0)
        for flag in ("--cluster", "--task_index", "--ps_hosts",
                     "--allow_insecure_network", "--worker_timeout"):
            self.assertIn(flag, output)

    def test_version_exits_with_0(self):
        code, output = self.run_ps("--version")
        self.assertEqual(code, 0)
        self.assertRegex(output, r"^muster \d+\.\d+\.\d+ \(protocol \d+\)")

    def test_misspelt_flag_gets_the_nearest_one(self):
        self.assert_refused("--clustr=x", says=["--clustr", "--cluster?"])

    def test_bad_flag_value_says_what_is_wanted(self):
        self.assert_refused("--max_wait=banana",
                            says=["--max_wait", "banana", "duration"])

    def test_times_that_make_no_sense_are_refused(self):
        for flag in ("--max_wait=0", "--worker_timeout=-1s",
                     "--worker_timeout=nan"):
            self.assert_refused(flag, says=flag.split("="))

    def test_too_little_room_for_threads_is_said(self):
        # 2 MiB of address space for each thread.
        code, output = self.run_to_end("ps_server", [
            "sh", "-c", 'ulimit -v 400000; exec "$0" "$@"',
            harness.ps_server(), "--ps_hosts=localhost:7",
            "--worker_hosts=localhost:8", "--apply_threads=250"])
        self.assertEqual(code, 2, output)
        self.assertIn("starting threads: wanted 266, could start ", output)

    def test_a_url_is_no_address(self):
        self.assert_refused("--ps_hosts=http://localhost:7",
                            "--worker_hosts=localhost:8",
                            says=["'http://localhost:7'", "is a URL",
                                  "host:port"])

    def test_no_cluster_at_all(self):
        self.assert_refused(says=["--cluster=FILE"])

    def test_missing_cluster_file(self):
        path = self.path("none.json")
        self.assert_refused("--cluster=" + path, says=[path])

    def test_malformed_cluster_file_names_the_place(self):
        path = self.write("bad.json", '{"ps": ["localhost:2222"],\n')
        self.assert_refused("--cluster=" + path, says=[path + ":2:1"])

    def test_malformed_address(self):
        path = self.write("bad.json", json.dumps(
            {"ps": ["localhost:99999"], "worker": ["localhost:1"]}))
        self.assert_refused("--cluster=" + path, says=["localhost:99999"])

    def test_task_index_out_of_range(self):
        cluster = self.write_cluster(ps=2)
        self.assert_refused("--cluster=" + cluster, "--task_index=2",
                            says=["/job:ps/task:2"])

    def test_duplicate_address(self):
        self.assert_refused(
            "--ps_hosts=localhost:7", "--worker_hosts=localhost:7",
            says=["duplicate address 'localhost:7'", "/job:ps/task:0",
                  "/job:worker/task:0"])

    def test_unknown_job_name(self):
        self.assert_refused("--cluster=" + self.write_cluster(),
                            "--job_name=pss", says=["'pss'", "'ps'"])

    def test_two_sources_that_disagree(self):
        cluster = self.write_cluster()
        self.assert_refused("--cluster=" + cluster, "--ps_hosts=localhost:7",
                            "--worker_hosts=localhost:8",
                            says=["contradict", "/job:ps/task:0"])
        tf_config = {"cluster": {"ps": ["a:1"], "worker": ["b:1"]},
                     "task": {"type": "ps", "index": 0}}
        self.assert_refused("--cluster=" + cluster,
                            env={"TF_CONFIG": json.dumps(tf_config)},
                            says=["contradict", "TF_CONFIG"])

    def test_foreign_address_without_tls_is_refused_with_4(self):
        self.assert_refused("--ps_hosts=" + FOREIGN_ADDRESS,
                            "--worker_hosts=198.51.100.8:2222", exit_code=4,
                            says=[FOREIGN_ADDRESS,
                                  "--allow_insecure_network"])

    def test_port_taken_is_an_error_not_a_silent_share(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            self.assert_refused("--ps_hosts=" + address,
                                "--worker_hosts=localhost:8", says=[address])

    def test_ends_on_signals_with_their_code(self):
        for signum in (signal.SIGINT, signal.SIGTERM):
            ps = self.start_ps(self.write_cluster(), 0)
            ps.wait_for("listening on 127.0.0.1")
            ps.send(signum)
            self.assertEqual(ps.wait(), 128 + signum)

    def test_links_no_cuda_and_no_onednn(self):
        libraries = subprocess.run(["ldd", harness.ps_server()], check=True,
                                   capture_output=True, text=True).stdout
        self.assertNotRegex(libraries, "(?i)cuda|cudnn|cublas|dnnl")


if __name__ == "__main__":
    harness.main()
