#!/usr/bin/env bash
# PyTorch 2.15.0 (known: pytorch/pytorch#13402, open since 2018): batch norm in
# train mode changes running_mean in place without raising its _version. What
# autograd kept of it is then another value, and backward gives a wrong gradient
# in silence, though the notes on autograd promise that no error means right
# gradients. Whoever finds changes by _version (a copy of a model's buffers, say)
# misses these.
# https://pytorch.org/docs/stable/notes/autograd.html#in-place-correctness-checks
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install \
  numpy==2.4.6 torch==2.15.0
"$folder/venv/bin/python" - <<'PYTHON'
import torch

torch.manual_seed(1)
norm = torch.nn.BatchNorm1d(4)
mean, weight = norm.running_mean, torch.ones(4, requires_grad=True)
version = mean._version
product = (weight * mean).sum()  # its gradient is mean, of zeros
norm(torch.randn(8, 4) + 3)
product.backward()
print("torch %s: version %d, then %d; gradient %s, wanted zeros" % (
    torch.__version__, version, mean._version, weight.grad.tolist()))
assert mean._version == version and weight.grad.abs().min() > 0, (
    "the behaviour has changed")

# Any other change in place is found.
product = (weight * mean).sum()
mean += 1
try:
    product.backward()
    raise AssertionError("the behaviour has changed")
except RuntimeError as error:
    print("by +=: %s" % str(error).split(":")[0])
PYTHON
