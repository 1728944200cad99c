#!/usr/bin/env python3
"""The MNIST CNN of the zoo on TensorFlow's parameter server, for bench.sh
--peers.

  tensorflow_ps.py WORKERS STEPS

One ps and WORKERS workers of STEPS steps each, on loopback: between-graph
replication with replica_device_setter and asynchronous Adam, one thread for
operations in each process. Prints one line of JSON: the steps a second of all
workers together while all of them ran.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time

import tensorflow as tf

import tensorflow_model
from loopback_ports import free_ports

WARM_UP = 20

tf1 = tf.compat.v1


class Launcher:
    """The tasks, each a process of this program, which ends with its standard
    input."""

    def __init__(self, workers, steps):
        ports = free_ports(1 + workers)
        addresses = ["127.0.0.1:%d" % port for port in ports]
        self.cluster = {"ps": addresses[:1], "worker": addresses[1:]}
        self.steps = steps

    def run(self):
        """Returns the steps a second."""
        with tempfile.TemporaryDirectory() as marks:
            tasks = [self._start(job, index, marks)
                     for job in ("ps", "worker")
                     for index in range(len(self.cluster[job]))]
            try:
                times = [json.loads(task.stdout.read().splitlines()[-1])
                         for task in tasks[1:]]
            finally:
                for task in tasks:
                    task.kill()
                    task.wait()
        return steps_per_s(times)

    def _start(self, job, index, marks):
        environment = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3",
                           OMP_NUM_THREADS="1", no_proxy="127.0.0.1")
        return subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--task", job,
             str(index), json.dumps(self.cluster), str(self.steps), marks],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)


def steps_per_s(times):
    """From the times at which each worker's steps ended."""
    begin = max(one[WARM_UP - 1] for one in times)
    end = min(one[-1] for one in times)
    return sum(begin < time_ <= end
               for one in times for time_ in one) / (end - begin)


class Marks:
    """A folder in which the workers tell each other how far they are."""

    def __init__(self, folder):
        self.folder = folder

    def set(self, name):
        with open(os.path.join(self.folder, name), "w", encoding="ascii"):
            pass

    def wait_for(self, names):
        while not all(os.path.exists(os.path.join(self.folder, name))
                      for name in names):
            time.sleep(0.02)


def make_graph(cluster, index):
    """Returns (train operation, images, labels)."""
    with tf1.device(tf1.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % index, cluster=cluster)):
        variables = [tf1.get_variable("v%d" % i, initializer=value)
                     for i, value in enumerate(
                         tensorflow_model.initial_values())]
        images = tf1.placeholder(tf.float32, [None, 28, 28, 1])
        labels = tf1.placeholder(tf.int64, [None])
        loss = tensorflow_model.loss(variables, images, labels)
        train = tf1.train.AdamOptimizer(
            tensorflow_model.LEARNING_RATE).minimize(loss)
        return train, images, labels


def work(server, config, cluster, index, steps, marks):
    """Prints when each step ended."""
    train, images, labels = make_graph(cluster, index)
    batch = dict(zip((images, labels), tensorflow_model.batch()))
    workers = [str(i) for i in range(cluster.num_tasks("worker"))]
    config.device_filters.extend(["/job:ps", "/job:worker/task:%d" % index])
    with tf1.Session(server.target, config=config) as session:
        if index == 0:
            session.run(tf1.global_variables_initializer())
            marks.set("ready")
        marks.wait_for(["ready"])
        marks.set(str(index))
        marks.wait_for(workers)
        times = []
        for _ in range(WARM_UP + steps):
            session.run(train, batch)
            times.append(time.monotonic())
    print(json.dumps(times), flush=True)


def end_with_input():
    sys.stdin.read()
    os._exit(1)  # pylint: disable=protected-access


def run_task(job, index, addresses, steps, folder):
    threading.Thread(target=end_with_input, daemon=True).start()
    tf1.disable_eager_execution()
    config = tf1.ConfigProto(intra_op_parallelism_threads=1,
                             inter_op_parallelism_threads=1)
    cluster = tf1.train.ClusterSpec(addresses)
    server = tf.distribute.Server(cluster, job_name=job, task_index=index,
                                  config=config)
    if job == "ps":
        server.join()
    work(server, config, cluster, index, steps, Marks(folder))
    # Nobody stops a server.
    os._exit(0)  # pylint: disable=protected-access


def main(arguments):
    if arguments[0] != "--task":
        launcher = Launcher(int(arguments[0]), int(arguments[1]))
        print(json.dumps({"steps_per_s": launcher.run()}))
        return
    job, index, cluster, steps, folder = arguments[1:]
    run_task(job, int(index), json.loads(cluster), int(steps), folder)


if __name__ == "__main__":
    main(sys.argv[1:])
