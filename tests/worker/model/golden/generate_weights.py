#!/usr/bin/python3
"""Writes weights.txt: PyTorch's float64 losses of weighted rows.

The mean over weights, sum(w l) / sum(w), of 4 consecutive steps of SGD of one
dense layer, for each of the losses with weights of rows, of classes
(CrossEntropyLoss(weight=...)), and of both. First values and the batch are a
formula (Uniform of generate.py), which weighted_loss_test.cc computes too.

    apt-get install python3-torch   # 1.13
    ./generate_weights.py > weights.txt
"""

import torch
import torch.nn.functional as F
from generate import Uniform

STEPS = 4
ROWS = 6
FEATURES = 4
OUTPUTS = 3
LEARNING_RATE = 0.5
CLASS_WEIGHTS = [1.0, 5.0, 0.25]
WEIGHTS_STREAM, BIAS_STREAM = 0, 1
EXAMPLES_STREAM, LABELS_STREAM, ROWS_STREAM = 100, 200, 300


def Fraction(stream, shape):
    count = int(torch.Size(shape).numel())
    values = Uniform(stream, count) * 2.0**-24
    return torch.tensor(values.reshape(shape), dtype=torch.float64)


CLASSES = torch.tensor(Uniform(LABELS_STREAM, ROWS) % OUTPUTS)
TARGETS = Fraction(LABELS_STREAM, (ROWS, OUTPUTS))
# From 0 to 7; one row weighs nothing.
ROW_WEIGHTS = torch.tensor(Uniform(ROWS_STREAM, ROWS) % 8, dtype=torch.float64)


def MeanOver(weights, losses):
    return (weights * losses).sum() / weights.sum()


def OfClasses(outputs, weights):
    """By torch's own weights."""
    return F.cross_entropy(
        outputs, CLASSES, weight=torch.tensor(weights, dtype=torch.float64))


LOSSES = {
    "softmax_rows": lambda x: MeanOver(
        ROW_WEIGHTS, F.cross_entropy(x, CLASSES, reduction="none")),
    "softmax_classes": lambda x: OfClasses(x, CLASS_WEIGHTS),
    "softmax_both": lambda x: MeanOver(
        ROW_WEIGHTS * torch.tensor(CLASS_WEIGHTS, dtype=torch.float64)[CLASSES],
        F.cross_entropy(x, CLASSES, reduction="none")),
    "sigmoid_rows": lambda x: MeanOver(
        ROW_WEIGHTS, F.binary_cross_entropy_with_logits(
            x, TARGETS, reduction="none").mean(1)),
    "squared_rows": lambda x: MeanOver(
        ROW_WEIGHTS, F.mse_loss(x, TARGETS, reduction="none").mean(1)),
}


def Print(name, loss_of):
    weights = Fraction(WEIGHTS_STREAM, (OUTPUTS, FEATURES)).requires_grad_()
    bias = Fraction(BIAS_STREAM, (OUTPUTS,)).requires_grad_()
    examples = Fraction(EXAMPLES_STREAM, (ROWS, FEATURES))
    optimizer = torch.optim.SGD([weights, bias], lr=LEARNING_RATE)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(F.linear(examples, weights, bias))
        print(name, step, repr(loss.item()))
        loss.backward()
        optimizer.step()


def main():
    print("# Made by generate_weights.py with PyTorch", torch.__version__)
    print("# loss, step from 0, loss before that step's update")
    for name, loss_of in LOSSES.items():
        Print(name, loss_of)


if __name__ == "__main__":
    main()
