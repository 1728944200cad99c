"""The MNIST CNN of the zoo, in TensorFlow's operations.

They serve both eager variables (tf.function) and those of a graph.
"""

import math

import numpy
import tensorflow as tf

BATCH = 128
LEARNING_RATE = 1e-3
# (shape, fan in, fan out): weights and biases of two convolutions and two
# dense layers.
LAYERS = (
    ((5, 5, 1, 32), 25, 25 * 32),
    ((5, 5, 32, 64), 25 * 32, 25 * 64),
    ((3136, 1024), 3136, 1024),
    ((1024, 10), 1024, 10),
)


def initial_values():
    """Glorot uniform weights, each followed by its biases of 0."""
    random = numpy.random.RandomState(1)
    values = []
    for shape, fan_in, fan_out in LAYERS:
        limit = math.sqrt(6 / (fan_in + fan_out))
        values.append(random.uniform(-limit, limit, shape).astype("float32"))
        values.append(numpy.zeros(shape[-1], "float32"))
    return values


def batch():
    """Random images and labels, the same in every step: input costs nothing."""
    random = numpy.random.RandomState(2)
    return (random.rand(BATCH, 28, 28, 1).astype("float32"),
            random.randint(10, size=BATCH).astype("int64"))


def loss(variables, images, labels):
    conv1, bias1, conv2, bias2, dense1, bias3, dense2, bias4 = variables
    values = images
    for kernel, bias in ((conv1, bias1), (conv2, bias2)):
        values = tf.nn.conv2d(values, kernel, 1, "SAME")
        values = tf.nn.relu(tf.nn.bias_add(values, bias))
        values = tf.nn.max_pool2d(values, 2, 2, "SAME")
    values = tf.reshape(values, [-1, LAYERS[2][0][0]])
    values = tf.nn.relu(tf.matmul(values, dense1) + bias3)
    logits = tf.matmul(values, dense2) + bias4
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels, logits))
