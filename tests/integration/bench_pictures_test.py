"""scripts/bench.sh --pictures, from made-up figures."""

import json
import os
import struct

from tests.integration import harness
from tests.integration import python_environment

PICTURES = os.path.abspath("scripts/benchmark/pictures.py")
REQUIREMENTS = os.path.abspath("scripts/benchmark/requirements.txt")
PNG = b"\x89PNG\r\n\x1a\n"
# python_environment gives up by itself.
INSTALL_S = 300


def row(value, point=None):
    return {"name": "a figure", "value": value, "min": value / 2,
            "max": value * 2, "point": point}


def point(picture, series, x):
    return {"picture": picture, "series": series, "x": x}


class PicturesTest(harness.TestCase):

    def draw(self, rows):
        """The names of the files in the folder afterwards."""
        bench = self.write("bench.json", json.dumps({"figures": rows}))
        code, output = self.run_to_end("pictures", [
            python_environment.interpreter(REQUIREMENTS), PICTURES, bench,
            self.path("pictures")], INSTALL_S)
        self.assertEqual(code, 0, output)
        return sorted(os.listdir(self.path("pictures")))

    def test_draws_each_picture_that_has_points(self):
        names = self.draw(
            [row(3.0), row(1.0, point("scaling", "alone", 1))] +
            [row(1e-3 * size, point("message_size", series, size))
             for series in ("one way", "another") for size in (4096, 65536)])
        self.assertEqual(names, ["message_size.png", "scaling.png"])
        for name in names:
            with open(os.path.join(self.path("pictures"), name), "rb") as file:
                head = file.read(24)
            self.assertEqual(head[:8], PNG)
            width, height = struct.unpack(">II", head[16:])
            self.assertGreater(width, height)

    def test_draws_nothing_that_was_not_measured(self):
        self.assertEqual(self.draw([row(3.0), row(
            1.0, point("scaling", "alone", 1))]), ["scaling.png"])


if __name__ == "__main__":
    harness.main()
