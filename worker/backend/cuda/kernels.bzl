"""The kernels: NAME is NAME.cu with its launchers, which NAME.h declares."""

KERNELS = [
    "batch_norm_kernel",
    "cast_kernel",
    "channel_sum_kernel",
    "dropout_kernel",
    "elementwise_kernel",
    "l2_penalty_kernel",
    "pool_kernel",
    "softmax_cross_entropy_kernel",
    "strided_copy_kernel",
    "target_loss_kernel",
    "update_rule_kernel",
]
