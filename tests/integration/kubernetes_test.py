"""cluster_configs/kubernetes: valid, and what its pods run trains.

Each pod is a process in a network namespace of its own, in which /etc/hosts has
the names that Kubernetes' DNS would give. Namespaces need root.
"""

import functools
import json
import os
import subprocess
import unittest

from tests.integration import harness
from tests.integration import network_hosts
from scripts.base import python_environment

FOLDER = os.path.abspath("cluster_configs/kubernetes")
JOBS = ("configuration.yaml", "jobs.yaml")
JOB_SET = ("jobset.yaml",)
# `ip netns exec` has made a mount namespace already.
IN_POD = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'


@functools.lru_cache(maxsize=None)
def read(*paths):
    """(documents, problems); to start that Python takes seconds."""
    python = python_environment.interpreter(
        os.path.abspath("tests/integration/manifest_requirements.txt"))
    done = subprocess.run(
        [python, os.path.abspath("tests/integration/read_manifests.py"),
         *paths], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    return found["documents"], found["problems"]


def read_ours():
    return read(*(os.path.join(FOLDER, name) for name in JOBS + JOB_SET))


def jobs_of(documents):
    """[(name of the Job, its spec, its pods' subdomain)]."""
    for document in documents:
        if document["kind"] == "Job":
            spec = document["spec"]
            yield (document["metadata"]["name"], spec,
                   spec["template"]["spec"]["subdomain"])
        for job in document["spec"]["replicatedJobs"] if (
                document["kind"] == "JobSet") else ():
            for i in range(job["replicas"]):
                yield ("%s-%s-%d" % (document["metadata"]["name"], job["name"],
                                     i), job["template"]["spec"],
                       document["spec"]["network"]["subdomain"])


class ManifestTest(harness.TestCase):

    def test_every_manifest_is_valid(self):
        documents, problems = read_ours()
        self.assertEqual(problems, [])
        self.assertEqual(
            {document["kind"] for document in documents},
            {"ConfigMap", "Job", "JobSet", "NetworkPolicy",
             "PersistentVolumeClaim", "Service"})

    def test_a_mistake_would_be_found(self):
        paths = []
        for i, (name, old, new) in enumerate((
                ("jobs.yaml", "backoffLimitPerIndex: 10", "backofLimit: 10"),
                ("jobs.yaml", "completions: 2", "completions: two"),
                ("jobset.yaml", "maxRestarts: 3", "maxRestart: 3"),
                ("jobset.yaml", "replicas: 1", "replicas: one"),
                ("jobset.yaml", "parallelism: 2", "paralelism: 2"))):
            with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
                text = file.read()
            self.assertIn(old, text)
            paths.append(self.write("%d.yaml" % i, text.replace(old, new, 1)))
        _, problems = read(*paths)
        self.assertEqual([problem.partition(":")[0] for problem in problems],
                         paths, problems)

    def test_exit_codes_decide_what_is_tried_again(self):
        documents, _ = read_ours()
        jobs = list(jobs_of(documents))
        self.assertEqual(len(jobs), 6)
        for name, spec, _ in jobs:
            fails, *ignored = spec["podFailurePolicy"]["rules"]
            self.assertEqual(fails["action"], "FailJob")
            self.assertEqual([one["action"] for one in ignored],
                             ["Ignore"] * len(ignored))
            # One that was stopped comes back; a chief has ended the job of all.
            codes = [rule["onExitCodes"]["values"] for rule in (fails, *ignored)
                     if "onExitCodes" in rule]
            self.assertEqual(codes, [[1, 2, 3, 4, 143]] if "chief" in name
                             else [[1, 2, 3, 4], [143]])
            # Without it a failed container is started again, whatever it said.
            self.assertEqual(spec["template"]["spec"]["restartPolicy"], "Never")


@unittest.skipIf(network_hosts.REASON is not None, network_hosts.REASON)
class PodTest(harness.TestCase):

    def start_pods(self, kinds):
        documents = [one for one in read_ours()[0] if one["kind"] in kinds]
        # jobs.yaml's stands first, in configuration.yaml.
        configuration = [one for one in read_ours()[0]
                         if one["kind"] == "ConfigMap"]
        configuration = configuration[0 if "Job" in kinds else 1]
        os.mkdir(self.path("configuration"))
        for name, text in configuration["data"].items():
            self.write("configuration/" + name, text)
        pods = [(job, index, spec["template"]["spec"]["containers"][0], domain)
                for job, spec, domain in jobs_of(documents)
                for index in range(spec["completions"])]
        hosts = network_hosts.of_test(self, len(pods))
        table = self.write("hosts", "127.0.0.1 localhost\n" + "".join(
            "%s %s-%d.%s\n" % (address, job, index, domain)
            for address, (job, index, _, domain) in zip(hosts.addresses, pods)))
        return [self.start("%s-%d" % (job, index), hosts.on(
            i, ["sh", "-c", IN_POD, "pod", table,
                *self.command(job, index, container)]))
                for i, (job, index, container, _) in enumerate(pods)]

    def command(self, job, index, container):
        """Its command line, as Kubernetes expands it, with this test's folders
        in place of what the pod mounts."""
        mounts = {mount["mountPath"]: mount["name"]
                  for mount in container["volumeMounts"]}
        self.assertEqual(mounts["/etc/muster"], "configuration")
        program = container["command"][0].rpartition("/opt/muster/bin/")[2]
        line = [harness.binary("%s/%s" % (program, program))]
        for argument in container["args"]:
            argument = argument.replace("$(JOB_COMPLETION_INDEX)", str(index))
            argument = argument.replace("=/etc/muster/",
                                        "=%s/" % self.path("configuration"))
            line.append(argument.replace("=/train", "=" + self.path(
                "train-%s-%d" % (job, index))))
        return line

    def train(self, kind, chief):
        pods = self.start_pods([kind])
        for pod in pods:
            self.assertEqual(pod.wait(), 0, pod.output)
        self.assertEqual(len(pods), 5)
        result = self.result("train-" + chief)
        self.assertEqual(result["global_step"], 200)

    def test_the_jobs_train(self):
        self.train("Job", "muster-chief-0")

    def test_the_job_set_trains(self):
        self.train("JobSet", "muster-chief-0-0")


if __name__ == "__main__":
    harness.main()
