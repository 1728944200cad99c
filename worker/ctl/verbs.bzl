"""musterctl's verbs."""

# Every verb, by the name of its source file, with what it includes besides
# :verb. A verb is one file and one entry here; tests/worker/ctl/BUILD reads the
# same list. The verbs that only read files link no backend.
VERBS = {
    "checkpoint_diff": [
        ":checkpoint_path",
        "//common/checkpoint:checkpoint_layout",
        "//common/checkpoint:checkpoint_reader",
        "//common/tensor:dtype",
    ],
    "checkpoint_export": [
        ":checkpoint_path",
        "//common/checkpoint:checkpoint_reader",
        "//common/checkpoint:file_system",
        "//common/checkpoint:safetensors_writer",
        "//common/tensor:dtype",
        "//common/tensor:shape",
    ],
    "checkpoint_ls": [
        ":checkpoint_path",
        "//common/base:escape",
        "//common/checkpoint:checkpoint_layout",
        "//common/checkpoint:checkpoint_reader",
        "//common/checkpoint:manifest",
        "//common/cluster:task_id",
        "//common/tensor:dtype",
    ],
    "checkpoint_verify": [":checkpoint_path"],
    "data_stats": [
        ":training_flag",
        "//common/tensor:shape",
        "//proto:training",
        "//worker/input/data_set:create_data_set",
        "//worker/input/data_set:data_set",
        "//worker/model:model_graph",
        "//worker/training:training_parts",
    ],
    "list": [
        "//common/base:nearest_name",
        "//common/cluster:placement_strategy",
        "//common/codec",
        "//common/config:attributes",
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
        "//common/tensor:shape",
        "//proto:training",
        "//worker/backend:operation",
        "//worker/layer:layer_operation",
        "//worker/model:model_graph",
    ],
    "placement": [
        ":training_flag",
        "//common/cluster:cluster_resolver",
        "//common/cluster:placement_table",
        "//common/cluster:task_id",
        "//proto:training",
        "//worker/model:model_graph",
        "//worker/training:place_model",
    ],
}
