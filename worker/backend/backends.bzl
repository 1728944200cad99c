# Every backend, by the name of its package. A backend is registered by the
# library of that name; :backends links them all.
BACKENDS = [
    "cpu",
    "ref",
]

# Those of --config=cuda. The package is linked as soon as it has such a library.
CUDA_BACKENDS = [
    "cuda",
]
