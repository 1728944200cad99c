#!/usr/bin/python3
"""Writes torch_golden.h: what torch.optim makes of known gradients.

Needs Debian's python3-torch. Run as
  tests/common/optimizer/generate_torch_golden.py > \
      tests/common/optimizer/torch_golden.h
"""

import torch

STEPS = 20
START = [0.5, -1.25, 0.0, 2.0]

# Name, the OptimizerSpec's settings, the same in PyTorch.
CASES = [
    ("Sgd", 'name: "sgd" attr { name: "learning_rate" f: 0.1 }',
     lambda p: torch.optim.SGD(p, lr=0.1)),
    ("Momentum", 'name: "momentum" attr { name: "learning_rate" f: 0.1 }',
     lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)),
    ("MomentumNesterov",
     'name: "momentum" attr { name: "learning_rate" f: 0.1 } '
     'attr { name: "nesterov" b: true }',
     lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True)),
    ("Nesterov",
     'name: "nesterov" attr { name: "momentum" f: 0.5 }',
     lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.5, nesterov=True)),
    ("AdagradDefaults", 'name: "adagrad"', torch.optim.Adagrad),
    ("AdagradStart",
     'name: "adagrad" attr { name: "initial_accumulator_value" f: 0.1 } '
     'attr { name: "epsilon" f: 1e-3 }',
     lambda p: torch.optim.Adagrad(
         p, initial_accumulator_value=0.1, eps=1e-3)),
    ("RmspropDefaults", 'name: "rmsprop"', torch.optim.RMSprop),
    ("RmspropMomentum",
     'name: "rmsprop" attr { name: "momentum" f: 0.9 } '
     'attr { name: "decay" f: 0.9 } attr { name: "epsilon" f: 1e-2 }',
     lambda p: torch.optim.RMSprop(p, alpha=0.9, eps=1e-2, momentum=0.9)),
    ("AdamDefaults", 'name: "adam"', torch.optim.Adam),
    ("AdamOthers",
     'name: "adam" attr { name: "learning_rate" f: 0.05 } '
     'attr { name: "beta1" f: 0.8 } attr { name: "beta2" f: 0.9 } '
     'attr { name: "epsilon" f: 1e-2 }',
     lambda p: torch.optim.Adam(p, lr=0.05, betas=(0.8, 0.9), eps=1e-2)),
    ("AdamwDefaults", 'name: "adamw"', torch.optim.AdamW),
    ("AdamwDecay",
     'name: "adamw" attr { name: "learning_rate" f: 0.1 } '
     'attr { name: "weight_decay" f: 0.2 }',
     lambda p: torch.optim.AdamW(p, lr=0.1, weight_decay=0.2)),
]


def gradient(t, i):
    # Exact in binary, of both signs, sometimes zero. Also in the test.
    return ((t * 7 + i * 13) % 11 - 5) / 8


def run(make):
    parameter = torch.nn.Parameter(torch.tensor(START, dtype=torch.float64))
    optimizer = make([parameter])
    rows = []
    for t in range(1, STEPS + 1):
        parameter.grad = torch.tensor(
            [gradient(t, i) for i in range(len(START))], dtype=torch.float64)
        optimizer.step()
        rows.append(parameter.detach().tolist())
    return rows


def main():
    print(f"""// Made by generate_torch_golden.py with torch {torch.__version__}.
#ifndef TESTS_COMMON_OPTIMIZER_TORCH_GOLDEN_H_
#define TESTS_COMMON_OPTIMIZER_TORCH_GOLDEN_H_

namespace muster {{

inline constexpr int kGoldenSteps = {STEPS};
inline constexpr int kGoldenElements = {len(START)};

struct TorchGolden {{
  const char* name;
  // An OptimizerSpec.
  const char* spec;
  // After each step.
  double parameters[kGoldenSteps][kGoldenElements];
}};

inline constexpr double kGoldenStart[kGoldenElements] = {{{
    ", ".join(repr(x) for x in START)}}};

inline constexpr TorchGolden kTorchGoldens[] = {{""")
    for name, spec, make in CASES:
        text = spec.replace('"', '\\"')
        print(f'{{"{name}", "{text}", {{')
        for row in run(make):
            print("{" + ", ".join(repr(x) for x in row) + "},")
        print("}},")
    print("""};

}  // namespace muster

#endif  // TESTS_COMMON_OPTIMIZER_TORCH_GOLDEN_H_""")


if __name__ == "__main__":
    main()
