"""The types of `input.type` with input.stream, one line each: TYPE is TYPE_stream.cc.

With what each includes besides what all do; a test reads the same list.
"""

STREAMS = {
    "csv": [
        "//worker/input/data_set:csv_labels",
        "//worker/input/data_set:example_layout",
        "//worker/input/file:csv_columns",
        "//worker/input/file:csv_reader",
    ],
    "tfrecord": [
        "//worker/input/data_set:tf_example_row",
        "//worker/input/file:tf_example",
        "//worker/input/file:tf_record_reader",
    ],
}
