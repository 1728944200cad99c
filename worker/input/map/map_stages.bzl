# Every map stage, by the name of its source file and of its type. A stage is one
# file and one line here; tests/worker/input/map/BUILD reads the same list.
MAP_STAGES = [
    "cast",
    "cutout",
    "normalize",
    "one_hot",
    "random_crop",
    "random_flip",
    "resize",
]
