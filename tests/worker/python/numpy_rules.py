"""The update rules of common/optimizer in NumPy, float64: formula, source and
conventions are in x_ref.h there."""

import numpy


class NumpyRule:
    """A rule of one parameter, with its slots."""

    def __init__(self, name, attributes):
        self._update = getattr(self, "_" + name)
        self._a = attributes
        self._slots = [0.0, 0.0]
        if name == "adagrad":
            self._slots[0] = attributes["initial_accumulator_value"]
        self._t = 0

    def apply(self, parameter, gradient, rate_factor=1.0):
        """Changes `parameter` in place."""
        self._t += 1
        rate = self._a["learning_rate"] * rate_factor
        g = gradient.astype(numpy.float64)
        parameter[...] = self._update(parameter.astype(numpy.float64), g, rate)

    def _sgd(self, p, g, rate):
        return p - rate * g

    def _momentum(self, p, g, rate):
        mu = self._a["momentum"]
        u = self._slots[0] = mu * self._slots[0] + g
        return p - rate * (g + mu * u if self._a["nesterov"] else u)

    def _adagrad(self, p, g, rate):
        a = self._slots[0] = self._slots[0] + g * g
        return p - rate * g / (numpy.sqrt(a) + self._a["epsilon"])

    def _rmsprop(self, p, g, rate):
        decay = self._a["decay"]
        v = self._slots[0] = decay * self._slots[0] + (1 - decay) * g * g
        step = g / (numpy.sqrt(v) + self._a["epsilon"])
        u = self._slots[1] = self._a["momentum"] * self._slots[1] + step
        return p - rate * u

    def _adam(self, p, g, rate):
        b1, b2 = self._a["beta1"], self._a["beta2"]
        m = self._slots[0] = b1 * self._slots[0] + (1 - b1) * g
        v = self._slots[1] = b2 * self._slots[1] + (1 - b2) * g * g
        root = numpy.sqrt(v) / numpy.sqrt(1 - b2 ** self._t)
        return p - rate / (1 - b1 ** self._t) * m / (
            root + self._a["epsilon"])

    def _adamw(self, p, g, rate):
        return self._adam(p, g, rate) - rate * self._a["weight_decay"] * p
