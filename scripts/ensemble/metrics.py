"""The figures of worker/metric that an evaluation names, of probabilities.

Each gets [(row, label)], the row None where it has no answer. A figure that is
not defined is None.
"""

import re


def _score(part, whole):
    return part / whole if whole else 0.0


def _positives(pairs, kind, k):
    """[(is one, is predicted)] of a class, or an output."""
    if kind == "classes":
        return [(label[0] == k, row is not None and row.index(max(row)) == k)
                for row, label in pairs]
    return [(label[k] > 0.5, row is not None and row[k] > 0.5)
            for row, label in pairs]


def _columns(pairs):
    return range(next((len(row) for row, _ in pairs if row is not None), 0))


def _mean_over_classes(pairs, kind, figure):
    found = []
    for k in _columns(pairs):
        both = _positives(pairs, kind, k)
        rows = sum(one for one, _ in both)
        predicted = sum(is_predicted for _, is_predicted in both)
        if rows + predicted or kind != "classes":
            found.append(figure(sum(one and is_predicted
                                    for one, is_predicted in both),
                                rows, predicted))
    return sum(found) / len(found) if found else None


def _precision(pairs, kind):
    return _mean_over_classes(pairs, kind, lambda right, rows, predicted:
                              _score(right, predicted))


def _recall(pairs, kind):
    return _mean_over_classes(pairs, kind, lambda right, rows, predicted:
                              _score(right, rows))


def _f1(pairs, kind):
    return _mean_over_classes(pairs, kind, lambda right, rows, predicted:
                              _score(2 * right, rows + predicted))


def _area(scored):
    """Of [(score, is one)]; None if all are one, or none is."""
    ones = others = half_pairs = begin = 0
    scored = sorted(scored)
    while begin < len(scored):
        end = begin
        while end < len(scored) and scored[end][0] == scored[begin][0]:
            end += 1
        equal_ones = sum(one for _, one in scored[begin:end])
        equal_others = end - begin - equal_ones
        half_pairs += equal_ones * (2 * others + equal_others)
        ones += equal_ones
        others += equal_others
        begin = end
    return half_pairs / 2 / ones / others if ones and others else None


def _auc(pairs, kind):
    if any(row is None for row, _ in pairs):
        return None
    columns = _columns(pairs)
    if kind == "classes" and len(columns) == 2:
        return _area([(row[1] - row[0], label[0] == 1) for row, label in pairs])
    areas = [_area([(row[k], label[0] == k if kind == "classes" else
                     label[k] > 0.5) for row, label in pairs]) for k in columns]
    areas = [area for area in areas if area is not None]
    return sum(areas) / len(areas) if areas else None


def _r2(pairs, _):
    if any(row is None for row, _ in pairs):
        return None
    found = []
    for k in _columns(pairs):
        targets = [label[k] for _, label in pairs]
        if min(targets) == max(targets):
            continue
        mean = sum(targets) / len(targets)
        found.append(1 - sum((row[k] - label[k]) ** 2 for row, label in pairs) /
                     sum((target - mean) ** 2 for target in targets))
    return sum(found) / len(found) if found else None


def _top(pairs, count):
    """The part of rows whose class is among the `count` likeliest."""
    hits = 0
    for row, label in pairs:
        if row is not None:
            ahead = sum(p > row[label[0]] or (p == row[label[0]] and k < label[0])
                        for k, p in enumerate(row))
            hits += ahead < count
    return hits / len(pairs)


_BY_NAME = {"test_precision": _precision, "test_recall": _recall,
            "test_f1": _f1, "test_auc": _auc, "test_r2": _r2}


def find(names, pairs, kind):
    """{name: number or None} of those names that are made here. `kind`:
    "classes", "probabilities" or "numbers"."""
    found = {}
    for name in names:
        top = re.fullmatch(r"test_top_(\d+)_accuracy", name)
        if name in _BY_NAME:
            found[name] = _BY_NAME[name](pairs, kind)
        elif top is not None:
            found[name] = _top(pairs, int(top.group(1)))
    return found
