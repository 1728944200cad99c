#!/usr/bin/env python3
"""Pictures TensorBoard's page over a run, by headless Chromium.

  scripts/screenshot_tensorboard.py TRAIN_DIR OUT.png

By hand, not in CI: wants `apt-get install chromium`, and installs TensorBoard
from PyPI as the tests do (scripts/base/python_environment.py). The
picture common/summary/tensorboard.png is of

  worker --standalone --train_dir=run --set summary.every_steps=10 \\
    --training=worker/model/zoo/softmax_regression.textproto \\
    --set stop.epochs=4 --set evaluation.every_steps=200 \\
    --set summary.histograms_every_steps=40
"""

import json
import os
import re
import subprocess
import sys
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from scripts.base import python_environment  # pylint: disable=C0413

SIZE = "1800,1080"
# Six cards side by side, at the top of the page.
CARDS = [
    {"plugin": "scalars", "tag": "loss"},
    {"plugin": "scalars", "tag": "accuracy"},
    {"plugin": "scalars", "tag": "test_accuracy"},
    {"plugin": "scalars", "tag": "gradient_norm"},
    {"plugin": "histograms", "tag": "parameters/logits/weights",
     "runId": "defaultExperimentId/chief"},
    {"plugin": "histograms", "tag": "gradients/logits/weights",
     "runId": "defaultExperimentId/chief"},
]
# The page's own clock: long enough to load and draw all.
PAGE_MS = 30000
CHROMIUM_S = 300
# 64 colours are enough for lines and text, and a fifth of the bytes.
SHRINK = """
import sys
from PIL import Image
picture = Image.open(sys.argv[1]).convert("RGB")
picture.quantize(64, dither=Image.Dither.NONE).save(sys.argv[1], optimize=True)
"""


def wait_for_address(tensorboard):
    for line in tensorboard.stderr:
        found = re.search(r"at (http://\S+)", line)
        if found:
            return found.group(1)
    sys.exit("screenshot_tensorboard.py: TensorBoard did not start")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    train_dir, picture = sys.argv[1:]
    python = python_environment.interpreter()
    with subprocess.Popen(
            [python, "-m", "tensorboard.main", "--host=127.0.0.1", "--port=0",
             "--logdir=" + os.path.join(train_dir, "summaries")],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True) as tensorboard:
        try:
            subprocess.run(
                ["chromium", "--headless", "--no-sandbox", "--disable-gpu",
                 "--hide-scrollbars", "--window-size=" + SIZE,
                 "--virtual-time-budget=%d" % PAGE_MS,
                 "--screenshot=" + os.path.abspath(picture),
                 "%s?pinnedCards=%s#timeseries" % (
                     wait_for_address(tensorboard),
                     urllib.parse.quote(json.dumps(CARDS)))],
                stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=CHROMIUM_S, check=True)
        finally:
            tensorboard.terminate()
    subprocess.run([python, "-c", SHRINK, picture], check=True)
    print("wrote %s, %d bytes" % (picture, os.path.getsize(picture)))


if __name__ == "__main__":
    main()
