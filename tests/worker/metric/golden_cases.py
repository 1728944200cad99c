"""The random cases of golden.txt, as metric_golden_test.cc makes them, too."""

CASES = 1000
NAN = float("nan")


class Random:
    """Knuth's MMIX generator."""

    def __init__(self, seed):
        self.state = (seed + 1) * 0x9E3779B97F4A7C15 % 2**64

    def below(self, count):
        self.state = (self.state * 6364136223846793005 +
                      1442695040888963407) % 2**64
        return (self.state >> 33) % count


class Case:
    """Rows of classes, of one or three probabilities, or of numbers."""

    def __init__(self, number):
        random = Random(number)
        self.kind = ("classes", "probability", "probabilities",
                     "numbers")[number % 4]
        self.outputs = {"classes": 2 + random.below(5), "probability": 1,
                        "probabilities": 3, "numbers": 1 + random.below(3)
                        }[self.kind]
        rows = 1 + random.below(40)
        # Few steps: ties. Few values: classes that no row has.
        steps = (3, 9, 41)[random.below(3)]
        values = 1 + random.below(self.outputs if self.kind == "classes" else
                                  (2 if self.kind != "numbers" else 5))
        has_nan = random.below(8) == 0
        # Outputs by row, and labels: one class, or a target an output.
        self.x, self.y = [], []
        for _ in range(rows):
            row = [(random.below(steps) - steps // 2) / 4
                   for _ in range(self.outputs)]
            if has_nan and random.below(5) == 0:
                row[random.below(self.outputs)] = NAN
            self.x.append(row)
            labels = 1 if self.kind == "classes" else self.outputs
            self.y.append([random.below(values) for _ in range(labels)])
