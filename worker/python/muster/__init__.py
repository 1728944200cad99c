"""Any model on Muster's parameter servers.

    import numpy, muster
    w = numpy.zeros(10, numpy.float32)
    model = muster.Model({"w": w}, optimizer="adam", learning_rate=1e-3,
                         train_dir="run1", ps="host:2222", rows=len(x),
                         batch_size=32, epochs=3)
    while not model.done:
        rows = model.rows()
        model.push_pull({"w": gradient(w, x[rows], y[rows])})   # in place
    model.finish()

`muster.torch` is for PyTorch, `muster.local` for tasks on this machine.
"""

from muster._errors import (CheckpointError, ConfigError, Error, ForkedError,
                            JobOver, SecurityError, UnavailableError)
from muster._init import init
from muster._job import Job
from muster._load import load
from muster._local import local
from muster._model import Model

__all__ = [
    "CheckpointError", "ConfigError", "Error", "ForkedError", "Job", "JobOver",
    "Model", "SecurityError", "UnavailableError", "init", "load", "local",
]
