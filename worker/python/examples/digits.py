"""A network of two dense layers in NumPy, on scikit-learn's digits.

    python digits.py --alone                                     # without Muster
    muster run -H localhost:2 -- python digits.py --train_dir=run1
"""

import argparse

import numpy
from sklearn.datasets import load_digits

HIDDEN, BATCH, RATE = 64, 32, 0.2


def load():
    """(1500 rows to train on, 297 to test), each (images, digits)."""
    x, y = load_digits(return_X_y=True)
    order = numpy.random.default_rng(0).permutation(len(x))
    x, y = (x[order] / 16).astype(numpy.float32), y[order]
    return (x[:1500], y[:1500]), (x[1500:], y[1500:])


def initial():
    random = numpy.random.default_rng(1)
    return {name: (random.standard_normal(shape) * shape[0] ** -0.5
                   if len(shape) > 1 else numpy.zeros(shape)
                   ).astype(numpy.float32)
            for name, shape in (("w1", (64, HIDDEN)), ("b1", (HIDDEN,)),
                                ("w2", (HIDDEN, 10)), ("b2", (10,)))}


def forward(p, x):
    hidden = numpy.maximum(x @ p["w1"] + p["b1"], 0)
    return hidden, hidden @ p["w2"] + p["b2"]


def backward(p, x, y):
    """The mean loss, and its gradients."""
    hidden, logits = forward(p, x)
    e = numpy.exp(logits - logits.max(1, keepdims=True))
    d = e / e.sum(1, keepdims=True)
    rows = numpy.arange(len(x))
    loss = -numpy.log(d[rows, y]).mean()
    d[rows, y] -= 1
    d /= len(x)
    d_hidden = d @ p["w2"].T * (hidden > 0)
    return loss, {"w1": x.T @ d_hidden, "b1": d_hidden.sum(0),
                  "w2": hidden.T @ d, "b2": d.sum(0)}


def train_alone(p, x, y, epochs):
    random = numpy.random.default_rng(2)
    for _ in range(epochs * len(x) // BATCH):
        rows = random.choice(len(x), BATCH, replace=False)
        for name, gradient in backward(p, x[rows], y[rows])[1].items():
            p[name] -= RATE * gradient


def train(p, x, y, epochs, train_dir):
    import muster
    with muster.Model(p, "sgd", RATE, train_dir=train_dir, rows=len(x),
                      batch_size=BATCH, epochs=epochs) as model:
        while not model.done:
            rows = model.rows()
            loss, gradients = backward(p, x[rows], y[rows])
            model.push_pull(gradients, loss=loss)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--train_dir")
    flags = parser.parse_args()
    (x, y), (test_x, test_y) = load()
    p = initial()
    if flags.alone:
        train_alone(p, x, y, flags.epochs)
    else:
        train(p, x, y, flags.epochs, flags.train_dir)
    right = forward(p, test_x)[1].argmax(1) == test_y
    print("test_accuracy=%.4f" % right.mean())
