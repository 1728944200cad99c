"""The types of `input.type`, one line each: TYPE is TYPE_data_set.cc.

With what each includes besides what all do; tests/worker/input/BUILD reads the
same list.
"""

DATA_SETS = {
    "idx": [":idx_file"],
    "synthetic": ["//worker/layer:counter_random"],
}
