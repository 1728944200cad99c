# Every metric, by the name of its source file and of its type. A metric is one
# file and one line here; tests/worker/metric/BUILD reads the same list.
METRICS = [
    "accuracy",
    "confusion_matrix",
    "mean_absolute_error",
    "root_mean_squared_error",
    "top_k",
]
