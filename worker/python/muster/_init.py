"""muster.init."""

import os
from typing import Optional, Sequence, Union

from muster._ends import say
from muster._errors import end_with_exit_codes
from muster._job import Job
from muster._spec import (Replication, Settings, with_default_task,
                          with_environment)

Path = Union[str, "os.PathLike[str]"]
Hosts = Union[str, Sequence[str]]


def init(train_dir: Optional[Path] = None, *, ps: Optional[Hosts] = None,
         workers: Optional[Hosts] = None, cluster: Optional[Path] = None,
         task_index: Union[int, str, None] = None,
         job_name: Optional[str] = None, namespace: Optional[str] = None,
         certs_dir: Optional[Path] = None,
         allow_insecure_network: Optional[bool] = None,
         link: Optional[str] = None, max_wait: Optional[float] = None,
         progress_every: Optional[float] = None,
         replication: Replication = "async", epochs: Optional[float] = None,
         steps: Optional[int] = None, seconds: Optional[float] = None,
         save_every_steps: Optional[int] = None,
         save_every_seconds: Optional[float] = None,
         keep: Optional[int] = None, seed: int = 0,
         training: str = "") -> Job:
    """Makes this process a worker. Connects to nobody: that begins with the
    first step.

    What is not given is looked for where `muster run` and `muster task` leave
    it (MUSTER_CLUSTER, MUSTER_TASK_INDEX, MUSTER_JOB_NAME, MUSTER_CERTS_DIR,
    MUSTER_ALLOW_INSECURE_NETWORK), and in TF_CONFIG.

    Args:
      train_dir: folder of the chief's checkpoints; one with checkpoints is
        resumed. None: nothing is saved.
      ps: addresses of the ps tasks, "h0:2222,h1:2222" or a list.
      workers: those of the workers; "any" or None: whoever comes.
      cluster: a file with both, instead.
      task_index: of this worker, from 0 (the chief, which every job needs) on;
        "any": ps task 0 gives it one, from 1 on. None with `ps` alone: 0 where
        a train_dir is given, else "any".
      job_name: "worker" (default) or "chief".
      namespace: of the model, on ps tasks that serve several.
      certs_dir: keys of `muster certs`, for mutual TLS.
      allow_insecure_network: whether other machines are talked to without.
      link: "auto" (default), "shared_memory", "tcp" or "grpc".
      max_wait: seconds to wait for other tasks; default 2 hours.
      progress_every: seconds between two progress lines; default 10.
      replication: "async", "sync" or "bounded_staleness"; or with settings:
        {"sync": {"replicas": 2}}, {"bounded_staleness": {"bound": 4}}.
      epochs, steps, seconds: the end of the job, whichever comes first: passes
        over the rows (rows of the last one that are fewer than a step's are
        left out), updates of all workers, the chief's time.
      save_every_steps, save_every_seconds: between two checkpoints; there is
        one at the end in any case.
      keep: the newest checkpoints that stay; default 5.
      seed: of the order of rows.
      training: further fields, as the text of a TrainingSpec without model and
        input: 'gradient { codec: "bf16" }'.

    Raises:
      ConfigError: a setting that cannot be, or contradicts the environment; no
        ps tasks anywhere; a second job in one process.
      SecurityError: other machines without keys.
    """
    given = Settings(**locals())
    end_with_exit_codes()
    given = with_environment(given, os.environ)
    settings = with_default_task(given, os.environ)
    job = Job(settings)
    if settings is not given:
        say('this worker is the chief (task_index=0), as it has a train_dir; '
            'further ones want task_index="any"' if settings.task_index == 0 else
            'this worker is a further one (task_index="any"), as it has no '
            'train_dir; one with task_index=0 or a train_dir is the chief')
    return job
