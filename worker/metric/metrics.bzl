# Every metric, by the name of its source file and of its type. A metric is one
# file and one line here; tests/worker/metric/BUILD reads the same list.
METRICS = [
    "accuracy",
    "auc",
    "confusion_matrix",
    "f1",
    "log_loss",
    "mean_absolute_error",
    "precision",
    "r2",
    "recall",
    "root_mean_squared_error",
    "top_k",
]
