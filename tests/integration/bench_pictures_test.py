"""scripts/bench.sh --pictures, from made-up figures."""

import json
import os
from xml.etree import ElementTree

from scripts.base import python_environment
from tests.integration import harness

PICTURES = os.path.abspath("scripts/benchmark/pictures.py")
REQUIREMENTS = os.path.abspath("scripts/benchmark/requirements.txt")
# To be shown in a README.
MAX_BYTES = 100000
# python_environment gives up by itself.
INSTALL_S = 300


def row(value, point=None):
    return {"name": "a figure", "value": value, "min": value / 2,
            "max": value * 2, "point": point}


def point(series, x):
    return {"series": series, "x": x}


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

    def test_draws_what_was_measured(self):
        drawn = self.draw({"figures": [row(3.0), row(1.0, point("alone", 1)),
                                       row(2.0, point("1 ps, grpc", 2))]})
        text = drawn.pop("scaling.svg")
        self.assertLess(len(text), MAX_BYTES)
        self.assertTrue(ElementTree.fromstring(text).tag.endswith("svg"))
        for word in ("alone", "1 ps, grpc", "steps/s"):
            self.assertIn(word, text)
        self.assertEqual(drawn, {})

    def test_draws_nothing_that_was_not_measured(self):
        self.assertEqual(self.draw({"figures": [row(3.0)]}), {})

    def test_the_same_figures_give_the_same_bytes(self):
        document = {"figures": [row(1.0, point("alone", 1))]}
        self.assertEqual(self.draw(document), self.draw(document))


if __name__ == "__main__":
    harness.main()
