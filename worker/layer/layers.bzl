# Every layer, by the name of its source file and of its type. A layer is one
# file and one line here; tests/worker/layer/BUILD reads the same list.
LAYERS = [
    "add",
    "average_pool",
    "batch_norm",
    "concat",
    "conv2d",
    "dense",
    "depthwise_conv2d",
    "dropout",
    "flatten",
    "global_average_pool",
    "global_max_pool",
    "layer_norm",
    "leaky_relu",
    "max_pool",
    "mean_squared_error",
    "relu",
    "sigmoid",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "tanh",
]
