#!/usr/bin/python3
"""Writes clip_golden.h: what PyTorch's clipping makes of known gradients.

Needs Debian's python3-torch. Run as
  tests/worker/tower/generate_clip_golden.py > tests/worker/tower/clip_golden.h
"""

import torch

GRADIENTS = [[3.0, -0.25, 0.0, 4.0, 1.5], [-12.0], [0.125, -0.0625, 0.5]]


def parameters():
    made = [torch.nn.Parameter(torch.zeros(len(g), dtype=torch.float64))
            for g in GRADIENTS]
    for parameter, gradient in zip(made, GRADIENTS):
        parameter.grad = torch.tensor(gradient, dtype=torch.float64)
    return made


def by_value(limit):
    made = parameters()
    torch.nn.utils.clip_grad_value_(made, limit)
    return made


def by_norm(limit):
    made = parameters()
    for parameter in made:
        torch.nn.utils.clip_grad_norm_([parameter], limit)
    return made


def by_global_norm(limit):
    made = parameters()
    torch.nn.utils.clip_grad_norm_(made, limit)
    return made


CASES = [("by_value: 1.25", by_value(1.25)), ("by_norm: 2.5", by_norm(2.5)),
         ("by_global_norm: 5", by_global_norm(5.0)),
         ("by_global_norm: 14", by_global_norm(14.0))]


def main():
    print(f"""// Made by generate_clip_golden.py with torch {torch.__version__}.
#ifndef TESTS_WORKER_CLIP_GOLDEN_H_
#define TESTS_WORKER_CLIP_GOLDEN_H_

namespace muster {{

// The elements of all tensors, one after the other.
struct ClipGolden {{
  // A ClippingSpec.
  const char* spec;
  double gradient[{sum(map(len, GRADIENTS))}];
}};

inline constexpr int kClipSizes[] = {{{", ".join(
    str(len(g)) for g in GRADIENTS)}}};
inline constexpr double kClipGradient[] = {{{", ".join(
    repr(x) for g in GRADIENTS for x in g)}}};

inline constexpr ClipGolden kClipGoldens[] = {{""")
    for spec, made in CASES:
        values = [x for p in made for x in p.grad.tolist()]
        print(f'{{"{spec}", {{{", ".join(map(repr, values))}}}}},')
    print("""};

}  // namespace muster

#endif  // TESTS_WORKER_CLIP_GOLDEN_H_""")


if __name__ == "__main__":
    main()
