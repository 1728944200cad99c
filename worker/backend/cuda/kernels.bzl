"""The kernels: NAME is NAME.cu with its launchers, which NAME.h declares."""

KERNELS = [
    "cast_kernel",
    "elementwise_kernel",
]
