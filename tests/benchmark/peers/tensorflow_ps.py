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
import sys
import tempfile
import time

import tensorflow as tf

import peer_tasks
import tensorflow_model
from loopback_ports import free_ports

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
            return peer_tasks.steps_per_s(
                peer_tasks.last_lines(tasks[1:], tasks[:1]))

    def _start(self, job, index, marks):
        return peer_tasks.start(
            __file__, ["--task", job, index, json.dumps(self.cluster),
                       self.steps, marks],
            {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"})


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
    config.device_filters.extend(["/job:ps", "/job:worker/task:%d" % index])
    with tf1.Session(server.target, config=config) as session:
        if index == 0:
            session.run(tf1.global_variables_initializer())
            marks.set("ready")
        marks.wait_for(["ready"])
        marks.meet(index, cluster.num_tasks("worker"))
        times = []
        for _ in range(peer_tasks.WARM_UP + steps):
            session.run(train, batch)
            times.append(time.monotonic())
    print(json.dumps(times), flush=True)


def run_task(job, index, addresses, steps, folder):
    peer_tasks.end_with_input()
    tf1.disable_eager_execution()
    config = tf1.ConfigProto(intra_op_parallelism_threads=1,
                             inter_op_parallelism_threads=1)
    cluster = tf1.train.ClusterSpec(addresses)
    server = tf.distribute.Server(cluster, job_name=job, task_index=index,
                                  config=config)
    if job == "ps":
        server.join()
    work(server, config, cluster, index, steps,
         peer_tasks.Marks(folder))
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
