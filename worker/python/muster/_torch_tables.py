"""Embedding and EmbeddingBag: layers whose rows are in tables of a job."""

import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
from torch.nn import functional

from muster._errors import ConfigError, JobOver
from muster._job import Job, current
from muster._rows import Table
from muster._saved_table import SavedTable


class _Pull(NamedTuple):
    """Rows of one forward pass: distinct ids, and the leaf that gets the
    gradients."""
    ids: torch.Tensor
    rows: torch.Tensor


class _Link:
    """From a layer to the tables of its DistributedOptimizer. That of a copy
    leads to none."""

    def __init__(self) -> None:
        self._tables: Optional["weakref.ref[Tables]"] = None

    def __reduce__(self) -> Any:
        return _Link, ()

    def set(self, tables: "Tables") -> None:
        """Leads there from now on, as long as they live."""
        self._tables = weakref.ref(tables)

    @property
    def tables(self) -> Optional["Tables"]:
        return None if self._tables is None else self._tables()


class _RowLayer(torch.nn.Module):
    """A layer that looks up rows of a table.

    Attributes:
      dim: floats of a row.
      name: of the table.
    """

    def __init__(self, dim: int, name: str) -> None:
        super().__init__()
        what = type(self).__name__
        if not isinstance(name, str) or not name:
            raise ConfigError("%s: name: wanted that of a table, as \"user\", "
                              "found %r" % (what, name))
        if not hasattr(dim, "__index__") or dim < 1:
            raise ConfigError("%s('%s'): dim: wanted 1 or more, found %r" %
                              (what, name, dim))
        self.dim = int(dim)
        self.name = name
        self.link = _Link()
        self._saved: Optional[SavedTable] = None

    def use(self, table: Optional[SavedTable]) -> None:
        """Reads rows from a table of `muster.load(run).tables` from now on, and
        from no job; None: from the job again. Errors: ConfigError for rows of
        another size."""
        if table is not None and table.dim != self.dim:
            raise ConfigError("use: the rows of table '%s' have %d floats, %s "
                              "has %d" % (table.name, table.dim, self._what(),
                                          self.dim))
        self._saved = table

    def extra_repr(self) -> str:
        return "%d, name=%r" % (self.dim, self.name)

    def _what(self) -> str:
        return "%s('%s')" % (type(self).__name__, self.name)

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _look_up(self, ids: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        """The rows of the distinct ids, on the device of `ids`, and the row of
        each id."""
        if not isinstance(ids, torch.Tensor) or ids.dtype not in (
                torch.int64, torch.int32):
            raise ConfigError(
                "%s: wanted a tensor of ids, int64, found %s" %
                (self._what(), getattr(ids, "dtype", type(ids).__name__)))
        distinct, places = torch.unique(ids.long(), return_inverse=True)
        is_training = (self._saved is None and self.training
                       and torch.is_grad_enabled())
        on_cpu = distinct.cpu()
        return (self._pull_for_training(on_cpu, ids.device) if is_training
                else self._read(on_cpu).to(ids.device)), places

    def _pull_for_training(self, ids: torch.Tensor,
                           device: torch.device) -> torch.Tensor:
        tables = self.link.tables
        if tables is None:
            raise ConfigError(
                "%s: a forward pass for training, and the layer is in no model "
                "of a DistributedOptimizer: make that first; to look only: "
                "model.eval() or torch.no_grad(), or use() of a table of "
                "muster.load(...)" % self._what())
        return tables.pull(self, ids, device)

    def _read(self, ids: torch.Tensor) -> torch.Tensor:
        if self._saved is not None:
            return torch.from_numpy(self._saved.lookup(ids.numpy()))
        tables = self.link.tables
        job = current() if tables is None else tables.job
        if job is None:
            raise ConfigError(
                "%s: its rows are on ps tasks, and this process has no job: "
                "use(muster.load(train_dir).tables['%s']) reads those of a "
                "checkpoint" % (self._what(), self.name))
        if not job.is_started:
            return torch.from_numpy(job.first_rows(self.name, self.dim,
                                                   ids.numpy()))
        self.check_running(job)
        rows = job.pull_rows(self.name, ids.numpy())
        if rows is None:
            raise JobOver("%s: the job was over before its rows were read: %s" %
                          (self._what(), self._advice()))
        return torch.from_numpy(rows)

    def check_running(self, job: Job) -> None:
        """Raises ConfigError if no more rows can be read."""
        if job.done:
            raise ConfigError("%s: the job is over, and its ps tasks are gone: "
                              "%s" % (self._what(), self._advice()))

    def _advice(self) -> str:
        return ("use(muster.load(train_dir).tables['%s']) reads the rows of "
                "the chief's last checkpoint" % self.name)


class Embedding(_RowLayer):
    """As torch.nn.Embedding, but rows are on the ps tasks of the job, in a
    sparse table, by any 64-bit ids; they are made as they are first trained.

        self.user = muster.Embedding(16, name="user")    # muster.torch
        ...
        self.user(ids)         # int64, any shape: float32 [*ids.shape, 16]

    A forward pass for training pulls the distinct ids' rows, which get
    gradients; `step()` of the DistributedOptimizer, whose model has the layer,
    pushes their sums, with the other gradients. `job.table` says their rule and
    first values. In eval mode and under no_grad rows are read, none is made;
    before the job has begun they have first values. After it `use` reads a
    checkpoint's.

    The layer has no parameters: `state_dict()` has no rows, nor do clipping and
    weight decay see them; Muster's checkpoints have them (tables.safetensors).
    One table is one layer, which a model may call as often as it likes.
    """

    def __init__(self, dim: int, *, name: str) -> None:
        """A table of rows of `dim` floats. Errors: ConfigError."""
        super().__init__(dim, name)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Float32 [*ids.shape, dim], on the device of `ids`."""
        rows, places = self._look_up(ids)
        return functional.embedding(places, rows)


class EmbeddingBag(_RowLayer):
    """As Embedding, and sums the rows of each bag, or takes their mean, as
    torch.nn.EmbeddingBag does:

        self.genres = muster.EmbeddingBag(16, name="genre", mode="sum")
        ...
        self.genres(ids)            # [bags, ids of a bag]: [bags, 16]
        self.genres(ids, offsets)   # of one dimension: where each bag begins
    """

    def __init__(self, dim: int, *, name: str, mode: str = "mean") -> None:
        """Args: dim, name: as Embedding; mode: "mean" or "sum". Errors:
        ConfigError."""
        super().__init__(dim, name)
        if mode not in ("mean", "sum"):
            raise ConfigError("%s: mode: wanted \"mean\" or \"sum\", found %r" %
                              (self._what(), mode))
        self.mode = mode

    def forward(self, ids: torch.Tensor,
                offsets: Optional[torch.Tensor] = None) -> torch.Tensor:
        """Float32 [bags, dim]; zeros of a bag without ids."""
        rows, places = self._look_up(ids)
        return functional.embedding_bag(
            places, rows, None if offsets is None else offsets.long(),
            mode=self.mode)


class Tables:
    """Those of a model, in the steps of its DistributedOptimizer.

    Attributes:
      job: that of the optimizer.
    """

    def __init__(self, model: torch.nn.Module, job: Job,
                 start: Callable[[], None]) -> None:
        """`start` lets the job begin, if it has not. Errors: ConfigError for two
        layers of one table."""
        self.job = job
        self._start = start
        self._layers: Dict[str, _RowLayer] = {}
        # Of the current step, by table.
        self._pulls: Dict[str, List[_Pull]] = {}
        # The job came to its end in the current step, which is in no update.
        self._is_over = False
        paths: Dict[str, str] = {}
        for path, layer in model.named_modules():
            if not isinstance(layer, _RowLayer):
                continue
            if layer.name in paths:
                raise ConfigError(
                    "DistributedOptimizer: '%s' and '%s' both have the table "
                    "'%s': give each a name of its own, or call one layer "
                    "twice" % (paths[layer.name], path, layer.name))
            paths[layer.name] = path
            self._layers[layer.name] = layer
            layer.link.set(self)

    def __bool__(self) -> bool:
        return bool(self._layers)

    @property
    def definitions(self) -> List[Table]:
        """In the order of the model."""
        return [(name, layer.dim) for name, layer in self._layers.items()]

    def pull(self, layer: _RowLayer, ids: torch.Tensor,
             device: torch.device) -> torch.Tensor:
        """Rows of distinct ids, a leaf whose gradient `push` gives; that of
        before for the same ids in the same step."""
        self._start()
        pulls = self._pulls.setdefault(layer.name, [])
        for pull in pulls:
            if torch.equal(pull.ids, ids) and pull.rows.device == device:
                return pull.rows
        if not self._is_over:
            layer.check_running(self.job)
        found = self.job.pull_rows(layer.name, ids.numpy())
        # Others may end the job in mid-step: its loop goes on to step().
        self._is_over = found is None
        rows = (torch.zeros(len(ids), layer.dim) if found is None
                else torch.from_numpy(found)).to(device).requires_grad_()
        pulls.append(_Pull(ids, rows))
        return rows

    def push(self) -> None:
        """Gives the gradients of the step's rows to the job's next push, and
        forgets the rows."""
        pulls = self.forget()
        for name, each in pulls.items():
            for ids, rows in each:
                if rows.grad is not None:
                    self.job.push_rows(
                        name, ids.numpy(),
                        rows.grad.detach().cpu().contiguous().numpy())

    def forget(self) -> Dict[str, List[_Pull]]:
        """The rows of the step, which has an end."""
        pulls, self._pulls = self._pulls, {}
        self._is_over = False
        return pulls

    def zero_grad(self) -> None:
        """As an optimizer's."""
        for pulls in self._pulls.values():
            for pull in pulls:
                pull.rows.grad = None
