"""The placement strategies: <name>_placement.cc and its test for each."""

PLACEMENTS = [
    "greedy",
    "pinned",
    "random",
    "round_robin",
]
