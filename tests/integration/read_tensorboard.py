"""Reads a logdir as TensorBoard does, and prints what it found as JSON.

  read_tensorboard.py LOGDIR

Runs in the environment of python_environment.py. The result, for both of
TensorBoard's readers ("python" and "rust", the default of its page):

  {reader: {run: {plugin: {tag: [[step, value], ...]}}}}

A value is a number, a [k][3] list or a string; of images {"size", "mode",
"pixels"} for each; of a graph its nodes by name. Besides, of each file in
order, {"files": [[{"step", "kind"}, ...]]}, kind being what the event holds.
"""

import glob
import io
import json
import os
import sys
import time

from PIL import Image
from tensorboard import context
from tensorboard.backend.event_processing import data_provider
from tensorboard.backend.event_processing import event_file_loader
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.backend.event_processing import tag_types
from tensorboard.compat.proto import graph_pb2
from tensorboard.data import provider
from tensorboard.data import server_ingester
from tensorboard.util import grpc_util

# More than any test writes: nothing is sampled.
ALL = 100000
# For the server to have read all.
RUST_S = 20
PLUGINS = ("scalars", "histograms", "text", "images", "graphs")


def plain(value):
    """A datum as JSON has it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    return value.decode("utf-8") if isinstance(value, bytes) else value


def images(blobs):
    """What is drawn by a sequence of width, height and files."""
    width, height, *files = blobs
    drawn = []
    for file in files:
        image = Image.open(io.BytesIO(file))
        assert image.size == (int(width), int(height)), image.size
        drawn.append({"size": image.size, "mode": image.mode,
                      "pixels": list(image.tobytes())})
    return drawn


def graph(blobs):
    """{name: node} of a sequence of one GraphDef."""
    found, = (graph_pb2.GraphDef.FromString(blob) for blob in blobs)
    return {node.name: {
        "op": node.op, "input": list(node.input), "device": node.device,
        "shape": [dim.size for dim in
                  node.attr["_output_shapes"].list.shape[0].dim]}
            for node in found.node}


BLOBS = {"images": images, "graphs": graph}


def read_plugin(data, plugin):
    """{run: {tag: [[step, value], ...]}} of one plugin."""
    nobody = context.RequestContext()
    if plugin in BLOBS:
        found = data.read_blob_sequences(
            nobody, experiment_id="", plugin_name=plugin, downsample=ALL,
            run_tag_filter=provider.RunTagFilter())
        value = lambda datum: BLOBS[plugin](
            [data.read_blob(nobody, blob_key=blob.blob_key)
             for blob in datum.values])
    elif plugin == "scalars":
        found = data.read_scalars(
            nobody, experiment_id="", plugin_name=plugin, downsample=ALL,
            run_tag_filter=provider.RunTagFilter())
        value = lambda datum: datum.value
    else:
        found = data.read_tensors(
            nobody, experiment_id="", plugin_name=plugin, downsample=ALL,
            run_tag_filter=provider.RunTagFilter())
        value = lambda datum: plain(datum.numpy)
    return {run: {tag: [[datum.step, value(datum)] for datum in series]
                  for tag, series in tags.items()}
            for run, tags in found.items()}


def read(data):
    runs = {}
    for plugin in PLUGINS:
        for run, tags in read_plugin(data, plugin).items():
            runs.setdefault(run, {})[plugin] = tags
    return runs


def read_with_python(logdir):
    multiplexer = plugin_event_multiplexer.EventMultiplexer(
        size_guidance={tag_types.TENSORS: ALL},
        tensor_size_guidance={plugin: ALL for plugin in PLUGINS},
        purge_orphaned_data=True)
    multiplexer.AddRunsFromDirectory(logdir, None)
    multiplexer.Reload()
    return read(data_provider.MultiplexerDataProvider(multiplexer, logdir))


def read_with_rust(logdir, expected):
    """Reads until it finds what is expected: the server reads by and by."""
    ingester = server_ingester.SubprocessServerDataIngester(
        server_binary=server_ingester.get_server_binary(), logdir=logdir,
        reload_interval=1, channel_creds_type=grpc_util.ChannelCredsType.LOCAL,
        samples_per_plugin={plugin: ALL for plugin in PLUGINS})
    ingester.start()
    deadline = time.monotonic() + RUST_S
    while True:
        found = read(ingester.data_provider)
        if found == expected or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def read_files(logdir):
    files = []
    for path in sorted(glob.glob(os.path.join(logdir, "*", "events.*"))):
        loader = event_file_loader.EventFileLoader(path)
        files.append([{"step": event.step, "kind": event.WhichOneof("what")}
                      for event in loader.Load()])
    return files


def main():
    logdir = sys.argv[1]
    python = read_with_python(logdir)
    json.dump({"python": python, "rust": read_with_rust(logdir, python),
               "files": read_files(logdir)}, sys.stdout)


if __name__ == "__main__":
    main()
