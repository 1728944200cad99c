"""scripts/bench.sh --table, from made-up figures."""

import json
import os
import sys

from tests.integration import harness

sys.path.insert(0, os.path.abspath("scripts"))
# pylint: disable=wrong-import-position
from benchmark import figures, report

MODULE = "benchmark.report"


def figure(name, samples, noisy=0, **target):
    ordered = sorted(samples)
    return {"name": name, "unit": "x", "min": ordered[0], "max": ordered[-1],
            "value": ordered[len(ordered) // 2], "samples": samples,
            **figures.NO_TARGET, **target,
            "noisy_samples": noisy}


DOCUMENT = {
    "machine": {"cpu": "a processor", "cores": 2, "kernel": "6.1",
                "architecture": "x86_64"},
    "rounds": 3, "command": "scripts/bench.sh --peers",
    "figures": [figure("fast", [3.0, 1.0, 2.0], target=1.5, wanted="at least",
                       met=True),
                figure("no target", [5.0, 5.0, 5.0]),
                figure("slow", [40.25, 0.5, 7.0], noisy=2, target=1,
                       wanted="at most", met=False)]}
PAGE = "# Title\n%s\n%%s%s\nthe rest\n" % (report.BEGIN,
                                          report.END)
SECTION = """## Speed
2 cores of a processor, Linux 6.1; 3 rounds of `scripts/bench.sh --peers`.
1 of 2 targets are met by the median.

| figure | unit | min / median / max | target | met |
|---|---|---|---|---|
| fast | x | 1.00 / 2.00 / 3.00 | ≥ 1.50 | yes |
| slow | x | 0.500 / 7.00 / 40.2 | ≤ 1.00 | **no** (noisy: 2 of 3) |
"""


class TableTest(harness.TestCase):

    def written(self, page, *folder, flags=(), document=None):
        """What the program makes of a page."""
        bench = self.write("bench.json", json.dumps(document or DOCUMENT))
        path = self.write("page.md", page)
        code, output = self.run_to_end(
            "table", [sys.executable, "-m", MODULE, *flags, bench, path,
                      *folder],
            env=dict(os.environ, PYTHONPATH=os.path.abspath("scripts")))
        with open(path, encoding="utf-8") as file:
            return code, output, file.read()

    def test_writes_every_figure_with_a_target(self):
        for old in ("", "| what | was | there |\n"):
            code, output, page = self.written(PAGE % old)
            self.assertEqual((code, output), (0, ""))
            self.assertEqual(page, PAGE % SECTION)

    def test_shows_the_picture_that_is_there(self):
        os.makedirs(self.path("drawn"))
        self.write("drawn/scaling.svg", "<svg/>")
        self.assertEqual(
            self.written(PAGE % "", self.path("drawn"))[2],
            PAGE % (SECTION + "\n![Steps/s by the number of workers]"
                    "(drawn/scaling.svg)\n"))

    def test_ratios_are_a_few_with_the_picture(self):
        name = report.RATIOS[0]
        os.makedirs(self.path("drawn"))
        self.write("drawn/scaling.svg", "<svg/>")
        figures_ = DOCUMENT["figures"] + [
            figure(name, [2.0, 1.5, 1.0], target=1.25, wanted="at least",
                   met=True, noisy=3)]
        self.assertEqual(
            self.written(PAGE % "", self.path("drawn"), flags=["--ratios"],
                         document={**DOCUMENT, "figures": figures_})[2],
            PAGE % ("| ratio | min / median / max | target | met |\n"
                    "|---|---|---|---|\n"
                    "| %s | 1.00 / 1.50 / 2.00 | ≥ 1.25 | open (noisy: 3 of 3) "
                    "|\n\n![Steps/s by the number of workers]"
                    "(drawn/scaling.svg)\n" % name))

    def test_leaves_a_file_without_the_section_as_it_is(self):
        for page in ("# Title\n", report.BEGIN + "\n",
                     report.END + "\n" + report.BEGIN + "\n",
                     PAGE % "" + PAGE % ""):
            code, output, after = self.written(page)
            self.assertEqual(code, 1)
            self.assertIn("wanted one line '%s'" % report.BEGIN, output)
            self.assertEqual(after, page)


if __name__ == "__main__":
    harness.main()
