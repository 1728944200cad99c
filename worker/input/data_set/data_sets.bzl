"""The types of `input.type`, one line each: TYPE is TYPE_data_set.cc.

With what each includes besides what all do; tests/worker/input/BUILD reads the
same list.
"""

PARTS = {
    "cifar": ["//worker/input/file:file_bytes"],
    "npy": [
        "//common/process:memory_limit",
        "//worker/input/file:npy_file",
        "//worker/input/file:npz_member",
    ],
    "idx": [":idx_file"],
    "synthetic": ["//worker/layer:counter_random"],
    "image_folder": [
        ":find_part",
        "//worker/input/file:file_bytes",
        "//worker/input/image:image_folder",
    ],
}

DATA_SETS = {
    "csv": [":csv_labels", ":example_layout", ":find_part", "//worker/input/file:csv_table"],
    "tfrecord": [
        ":file_data_set",
        ":find_part",
        ":tf_example_row",
        "//worker/input/file:bad_rows",
        "//worker/input/file:tf_example",
        "//worker/input/file:tf_record_file",
    ],
}
