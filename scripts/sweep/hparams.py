"""A sweep for TensorBoard's HPARAMS page: a program of main.py's.

SWEEP_DIR/hparams/ has a run for each trial, with its parameters and its metric.
Reads main.py's document on stdin. Runs in the environment of requirements.txt.
"""

import json
import os
import shutil
import sys

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import summary_v2
from tensorboard.summary.writer.event_file_writer import EventFileWriter


def number_or_text(text):
    try:
        return float(text)
    except ValueError:
        return text


def write_trial(folder, trial, metric):
    writer = EventFileWriter(folder)
    parameters = {field: number_or_text(text)
                  for field, text in trial["parameters"].items()}
    started = summary_v2.hparams_pb(parameters, trial_id=str(trial["number"]))
    value = Summary.Value(tag=metric, simple_value=trial["value"])
    for summary in (started, Summary(value=[value])):
        writer.add_event(Event(summary=summary))
    writer.close()


def main():
    document = json.load(sys.stdin)
    folder = os.path.join(document["sweep_dir"], "hparams")
    shutil.rmtree(folder, ignore_errors=True)
    for trial in document["trials"]:
        write_trial(os.path.join(folder, "trial-%04d" % trial["number"]), trial,
                    document["metric"])
    print("tensorboard --logdir=" + folder)


if __name__ == "__main__":
    main()
