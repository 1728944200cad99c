"""The types of `input.type`, one line each: TYPE is TYPE_data_set.cc.

With what each includes besides what all do; tests/worker/input/BUILD reads the
same list.
"""

_FILES = [":example_layout", ":file_data_set", ":find_part"]

DATA_SETS = {
    "cifar": _FILES + ["//worker/input/file:cifar_file"],
    "csv": [":example_layout", ":find_part", "//worker/input/file:csv_table"],
    "idx": [":example_layout", ":idx_file"],
    "image_folder": [
        ":example_layout",
        ":find_part",
        "//proto:tensor",
        "//worker/input/file:file_bytes",
        "//worker/input/image:image_decoder",
        "//worker/input/image:image_folder",
        "//worker/input/map:map_chain",
        "//worker/input/map:resize",
        "//worker/input/map:row_spec",
    ],
    "npy": _FILES + [
        "//common/process:memory_limit",
        "//worker/input/file:npy_file",
        "//worker/input/file:npz_member",
    ],
    "synthetic": ["//worker/layer:counter_random"],
    "tfrecord": _FILES + ["//worker/input/file:tf_example", "//worker/input/file:tf_record_file"],
}
