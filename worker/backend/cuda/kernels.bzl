"""The kernels: NAME is NAME.cu with its launchers, which NAME.h declares."""

KERNELS = [
    "cast_kernel",
    "channel_sum_kernel",
    "elementwise_kernel",
    "strided_copy_kernel",
]
