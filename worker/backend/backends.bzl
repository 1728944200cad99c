# Every backend, by the name of its package. A backend is registered by the
# library of that name; :backends links them all.
BACKENDS = [
    "cpu",
]

# Those of --config=cuda alone.
CUDA_BACKENDS = [
    "cuda",
]
