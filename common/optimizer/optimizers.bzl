"""The update rules, one line each. sgd.cc and sgd_ref.h show the form."""

OPTIMIZERS = [
    "adagrad",
    "adam",
    "ftrl",
    "momentum",
    "rmsprop",
    "sgd",
]

# Fused multiply-add is left out on purpose: without it every instruction set
# and the reference twins give the same bits, and the rules are limited by
# memory all the same. See README.md.
OPTIMIZER_COPTS = ["-ffp-contract=off"]
