"""scripts/bench.sh --pictures, from made-up figures."""

import json
import os
from xml.etree import ElementTree

from tests.integration import harness
from scripts.base import python_environment

PICTURES = os.path.abspath("scripts/benchmark/pictures.py")
REQUIREMENTS = os.path.abspath("scripts/benchmark/requirements.txt")
# To be shown in a README.
MAX_BYTES = 100000
# python_environment gives up by itself.
INSTALL_S = 300


def row(value, point=None):
    return {"name": "a figure", "value": value, "min": value / 2,
            "max": value * 2, "point": point}


def point(picture, series, x):
    return {"picture": picture, "series": series, "x": x}


def timeline(link):
    spans = [("pull", "pull", 0, 10), ("compute", "compute", 10, 90),
             ("compute", "forward", 10, 30), ("compute", "backward", 40, 60),
             ("send 1", "dense/weights", 50, 5), ("push", "push", 100, 1)]
    return {"link": link, "workers": 2, "spans": [
        {"lane": lane, "name": name, "begin_ms": begin, "ms": ms}
        for lane, name, begin, ms in spans]}


class PicturesTest(harness.TestCase):

    def draw(self, document):
        """{name of a file: its text} of the folder afterwards."""
        bench = self.write("bench.json", json.dumps(document))
        code, output = self.run_to_end("pictures", [
            python_environment.interpreter(REQUIREMENTS), PICTURES, bench,
            self.path("pictures")], INSTALL_S)
        self.assertEqual(code, 0, output)
        drawn = {}
        for name in os.listdir(self.path("pictures")):
            path = os.path.join(self.path("pictures"), name)
            with open(path, encoding="utf-8") as file:
                drawn[name] = file.read()
        return drawn

    def test_draws_each_picture_that_was_measured(self):
        drawn = self.draw({
            "figures": [row(3.0), row(1.0, point("scaling", "alone", 1))] +
            [row(1e-3 * size, point("message_size", series, size))
             for series in ("one way", "another") for size in (4096, 65536)],
            "timelines": [timeline("shared_memory"), timeline("grpc")]})
        for name, words in (
                ("scaling.svg", ["alone", "steps/s"]),
                ("message_size.svg", ["one way", "another", "GB/s"]),
                ("timeline.svg", ["one of 2 workers, grpc", "shared_memory",
                                  "forward", "backward", "send 1", "pull"])):
            text = drawn.pop(name)
            self.assertLess(len(text), MAX_BYTES)
            self.assertTrue(ElementTree.fromstring(text).tag.endswith("svg"))
            for word in words:
                self.assertIn(word, text)
        self.assertEqual(drawn, {})

    def test_draws_nothing_that_was_not_measured(self):
        self.assertEqual(
            list(self.draw({"figures": [row(3.0), row(
                1.0, point("scaling", "alone", 1))]})), ["scaling.svg"])

    def test_the_same_figures_give_the_same_bytes(self):
        document = {"figures": [row(1.0, point("scaling", "alone", 1))],
                    "timelines": [timeline("grpc")]}
        self.assertEqual(self.draw(document), self.draw(document))


if __name__ == "__main__":
    harness.main()
