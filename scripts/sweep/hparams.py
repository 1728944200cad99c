"""A sweep for TensorBoard's HPARAMS page.

SWEEP_DIR/hparams/ has a run for each trial, with its parameters and its metric.
Needs the packages of requirements.txt.
"""

import os
import shutil

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
                  for field, text in trial.parameters.items()}
    started = summary_v2.hparams_pb(parameters, trial_id=str(trial.number))
    value = Summary.Value(tag=metric, simple_value=trial.value())
    for summary in (started, Summary(value=[value])):
        writer.add_event(Event(summary=summary))
    writer.close()


def write(options, trials, _):
    """`trials`: those with a value. Returns how they are shown."""
    folder = os.path.join(options.sweep_dir, "hparams")
    shutil.rmtree(folder, ignore_errors=True)
    for trial in trials:
        write_trial(os.path.join(folder, os.path.basename(trial.folder)), trial,
                    options.metric)
    return "tensorboard --logdir=" + folder
