"""What muster.load returns: parameters, and tables of a checkpoint."""

from typing import Any, Dict, Tuple

import numpy

from muster._rows import first_rows, ids_of


class SavedTable:
    """A sparse table of a checkpoint.

    Attributes:
      name: of the table.
      dim: floats of a row.
      ids: of its rows, int64 [rows], in the checkpoint's order.
      values: of the rows, float32 [rows, dim].
    """

    def __init__(self, definition: str, name: str, ids: numpy.ndarray,
                 values: numpy.ndarray) -> None:
        """`definition`: the text of its TableDef."""
        self._definition = definition
        self._order: Any = None
        self.name = name
        self.dim = int(values.shape[1])
        self.ids = ids
        self.values = values

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return "<table '%s': %d rows of %d>" % (self.name, len(self), self.dim)

    def lookup(self, ids: Any) -> numpy.ndarray:
        """Float32 [*ids.shape, dim] of any int64 ids: the rows' values; an id
        without a row has the first values that it would have in training.
        Errors: ConfigError for ids that are no whole numbers."""
        wanted = ids_of("lookup in table '%s'" % self.name, ids)
        places, is_there = self._places(wanted)
        values = first_rows(self._definition, self.dim, wanted)
        values[is_there] = self.values[places[is_there]]
        return values

    def _places(self, ids: numpy.ndarray) -> Tuple[numpy.ndarray, Any]:
        """The row of each id, and whether it has one."""
        if not len(self):
            return numpy.zeros(ids.shape, int), numpy.zeros(ids.shape, bool)
        if self._order is None:
            self._order = numpy.argsort(self.ids)
        at = numpy.searchsorted(self.ids, ids, sorter=self._order)
        places = self._order[numpy.minimum(at, len(self) - 1)]
        return places, self.ids[places] == ids


class Parameters(Dict[str, numpy.ndarray]):
    """Parameters by name: float32 arrays of their shapes.

    Attributes:
      tables: the sparse tables, by name; none where a living job was read.
    """

    def __init__(self, parameters: Dict[str, numpy.ndarray],
                 tables: Dict[str, SavedTable]) -> None:
        super().__init__(parameters)
        self.tables = tables
