"""musterctl's verbs."""

# Every verb, by the name of its source file, with what it includes besides
# :verb. A verb is one file and one entry here; tests/worker/ctl/BUILD reads the
# same list. The verbs that only read files link no backend.
VERBS = {
    "checkpoint_diff": [
        ":checkpoint_path",
        "//common/checkpoint:checkpoint_layout",
        "//common/checkpoint:checkpoint_reader",
    ],
    "checkpoint_export": [
        ":checkpoint_path",
        "//common/checkpoint:checkpoint_reader",
        "//common/checkpoint:file_system",
        "//common/checkpoint:safetensors_writer",
    ],
    "checkpoint_ls": [
        ":checkpoint_path",
        "//common/checkpoint:checkpoint_layout",
        "//common/checkpoint:checkpoint_reader",
        "//common/checkpoint:manifest",
    ],
    "checkpoint_verify": [":checkpoint_path"],
    "data_bench": [
        ":training_flag",
        "//worker/input:bad_records",
        "//worker/input:input_pipeline",
        "//worker/input:input_threads",
        "//worker/input/data_set:create_data_set",
        "//worker/input/data_set:data_set",
        "//worker/input/file:bad_rows",
        "//worker/input/map:map_chain",
        "//worker/input/map:row_random",
        "//worker/input/map:row_spec",
        "//worker/input/stream:create_stream",
        "//worker/input/stream:example_stream",
        "//worker/model:model_graph",
        "//worker/training:training_parts",
    ],
    "data_stats": [
        ":training_flag",
        "//common/base:readable_number",
        "//worker/input/data_set:create_data_set",
        "//worker/input/data_set:data_set",
        "//worker/input/file:bad_rows",
        "//worker/model:model_graph",
        "//worker/training:training_parts",
    ],
    "list": [
        "//common/cluster:placement_strategy",
        "//common/codec",
        "//common/optimizer:learning_rate",
        "//common/optimizer:update_rule",
        "//worker/backend",
        "//worker/input/data_set:data_set_registry",
        "//worker/input/map:map_stage",
        "//worker/layer",
        "//worker/metric:metric",
        "//worker/tower:device_names",
    ],
    "model_show": [
        ":training_flag",
        "//worker/backend:device_name",
        "//worker/backend:operation",
        "//worker/layer:layer_operation",
        "//worker/model:model_graph",
        "//worker/model:split_check",
    ],
    "namespace_drop": [":namespace_calls"],
    "namespace_ls": [":namespace_calls"],
    "namespace_reset": [":namespace_calls"],
    "namespace_show": [
        ":namespace_calls",
        "//common/config:namespace_name",
    ],
    "placement": [
        ":training_flag",
        "//common/cluster:cluster_resolver",
        "//common/cluster:placement_table",
        "//worker/model:model_graph",
        "//worker/training:place_model",
    ],
}
