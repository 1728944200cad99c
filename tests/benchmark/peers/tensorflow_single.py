#!/usr/bin/env python3
"""The MNIST CNN of the zoo in one TensorFlow process, for bench.sh --peers.

  tensorflow_single.py THREADS STEPS

The whole step is one tf.function; Adam is TensorFlow's fused operation. Prints
one line of JSON.
"""

import json
import sys
import time

import tensorflow as tf

import tensorflow_model

WARM_UP = 20


class Trainer:
    """The variables, Adam's slots, and one step."""

    def __init__(self):
        self.variables = [tf.Variable(value)
                          for value in tensorflow_model.initial_values()]
        self.means = [tf.Variable(tf.zeros_like(variable))
                      for variable in self.variables]
        self.squares = [tf.Variable(tf.zeros_like(variable))
                        for variable in self.variables]
        self.power1 = tf.Variable(0.9)
        self.power2 = tf.Variable(0.999)

    @tf.function
    def step(self, images, labels):
        with tf.GradientTape() as tape:
            loss = tensorflow_model.loss(self.variables, images, labels)
        gradients = tape.gradient(loss, self.variables)
        for variable, mean, square, gradient in zip(
                self.variables, self.means, self.squares, gradients):
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle, m=mean.handle, v=square.handle,
                beta1_power=self.power1, beta2_power=self.power2,
                lr=tensorflow_model.LEARNING_RATE, beta1=0.9, beta2=0.999,
                epsilon=1e-7, grad=gradient)
        self.power1.assign(self.power1 * 0.9)
        self.power2.assign(self.power2 * 0.999)
        return loss


def main(threads, steps):
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    trainer = Trainer()
    images, labels = map(tf.constant, tensorflow_model.batch())
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            started = time.monotonic()
        trainer.step(images, labels).numpy()
    seconds = time.monotonic() - started
    print(json.dumps({"steps_per_s": steps / seconds}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
