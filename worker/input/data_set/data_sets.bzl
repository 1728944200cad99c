"""The types of `input.type`, one line each: TYPE is TYPE_part.cc.

With what each includes besides what all do; tests/worker/input/data_set reads
the same list.
"""

DATA_SETS = {
    "cifar": ["//worker/input/file:file_bytes"],
    "csv": ["//worker/input/file:csv_reader"],
    "idx": [":idx_file"],
    "image_folder": [
        ":open_part",
        "//worker/input/file:file_bytes",
        "//worker/input/image:image_folder",
    ],
    "npy": [
        "//common/process:memory_limit",
        "//worker/input/file:npy_file",
        "//worker/input/file:npz_member",
    ],
    "synthetic": ["//worker/layer:counter_random"],
    "tfrecord": [
        ":open_part",
        "//common/base:utf8",
        "//worker/input/file:bad_rows",
        "//worker/input/file:tf_example",
        "//worker/input/file:tf_record_file",
        "//worker/input/file:tf_record_reader",
        "//worker/input/image:image_decoder",
    ],
}
