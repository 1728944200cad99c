"""libmuster's words in the terms of this package."""

import re

# A program gives arguments where a worker has flags and a file.
_PHRASES = (
    ("--ps_hosts and --worker_hosts", "ps= and workers="),
    ("--job_name and --task_index", "job_name= and task_index="),
    ("--task_index=any", 'task_index="any"'),
    ("--worker_hosts=any", 'workers="any"'),
    ("--cluster=FILE", "cluster="),
    ("start all tasks with one training file and the same data",
     "start all workers with one program and the same arguments"),
    ("writes into it; choose another --train_dir",
     "writes into it; choose another train_dir=, or, if that one is this job's "
     'chief, give this worker task_index="any"'),
    ('as in table { pattern: ".*" optimizer { name: "adagrad" } }',
     'as job.table(".*", "adagrad")'),
    ("(srun: scripts/muster task), or --standalone for as many trainings",
     "(srun: scripts/muster task)"),
)
# Of a flag's name.
_ARGUMENTS = {
    "ps_hosts": "ps", "worker_hosts": "workers",
    **{name: name for name in (
        "task_index", "job_name", "cluster", "certs_dir", "train_dir",
        "max_wait", "namespace", "link", "allow_insecure_network")},
}
_FLAG = re.compile(r"--(%s)\b=?" % "|".join(_ARGUMENTS))
_TOO_MANY_ROWS = re.compile(r"step_rows is (\d+), wanted 1 to the (\d+) of "
                            r"epoch_rows")


def in_arguments(words: str) -> str:
    """What is said of flags, said of arguments of `init` and `Model`."""
    for flags, arguments in _PHRASES:
        words = words.replace(flags, arguments)
    words = _TOO_MANY_ROWS.sub(
        r"batch_size is \1, wanted 1 to the \2 rows of the data set", words)
    return _FLAG.sub(lambda flag: _ARGUMENTS[flag.group(1)] + "=", words)
