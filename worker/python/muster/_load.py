"""muster.load: the parameters of a run's checkpoints, or of a living job."""

import json
import os
import re
import warnings
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy

from muster._crc32c import crc32c
from muster._errors import CheckpointError, ConfigError
from muster._reader import read_job
from muster._saved_table import Parameters, SavedTable
from muster._spec import Settings

# common/checkpoint/manifest.h.
_FORMAT = 8
_NAME = re.compile(r"ckpt-([0-9]{12,})\Z")
_MANIFEST = "manifest.textproto"
_PARAMETERS = "parameters.safetensors"
_TABLES = "tables.safetensors"
_CRC_LINE = b"# crc32c of the text above: "
# What our files have (common/checkpoint/README.md).
_DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "u1"}
# More would be no header of ours.
_MAX_HEADER_BYTES = 100_000_000


class _Damage(Exception):
    """A checkpoint is not whole; the words say where."""


def load(path: Optional[Union[str, "os.PathLike[str]"]] = None, *,
         ps: Optional[Union[str, Sequence[str]]] = None,
         cluster: Optional[Union[str, "os.PathLike[str]"]] = None,
         namespace: Optional[str] = None,
         certs_dir: Optional[Union[str, "os.PathLike[str]"]] = None,
         allow_insecure_network: Optional[bool] = None,
         max_wait: Optional[float] = None) -> Parameters:
    """Parameters: float32 arrays of their shapes, by name.

    Sparse tables are in `.tables`, by name, each with `ids`, `values` and
    `lookup(ids)`: of a checkpoint. Those of a living job are not read, and a
    warning names them.

    load("run1"): those in the newest whole checkpoint of a `train_dir`, or in
    the one whose folder `path` is. Every byte is checked. A checkpoint that is
    damaged is passed over with a warning, as a worker does that resumes.

    load(ps="h:2222", namespace="cnn"): those that a job in training has now.
    It goes on meanwhile, and no worker of it waits or is displaced: what is
    read is of no single step. Each block (65536 elements) of a tensor is of some
    instant between the call and its return; all are of one initialization or
    restore. Of a job that rests (its workers wait) they are its parameters.
    What the environment says of a cluster is not looked at. Processes that are
    forked afterwards, as those of `muster.local`, cannot take part in a job.

    Args:
      path: a `train_dir` or a checkpoint.
      ps: addresses of all ps tasks of the job, in its order.
      cluster: a file with them, instead.
      namespace: of the model, on ps tasks that serve several.
      certs_dir: keys of `muster certs`, where the job has keys: a folder with
        the certificate of one worker, as which the ps tasks are asked.
      allow_insecure_network: whether other machines are talked to without.
      max_wait: seconds to wait for ps tasks that are away, and for a model that
        is not initialized yet; default 2 hours.

    Raises:
      CheckpointError: there is no checkpoint, or none is whole, or the newest
        is of a newer Muster.
      ConfigError: neither or both of a run and a job are given; the ps tasks do
        not have the namespace (those that they have are named), or not all of
        the model.
      SecurityError: other machines without keys; keys that are of no use.
      UnavailableError: after max_wait, with what was waited for.
    """
    places = [name for name, value in (("path", path), ("ps", ps),
                                       ("cluster", cluster))
              if value is not None]
    if len(places) != 1:
        raise ConfigError(
            "load: wanted one of a run's folder, ps= or cluster= of a living "
            "job, found %s" % (" and ".join(places) or "none"))
    if path is None:
        return read_job(Settings(
            ps=ps, cluster=cluster, namespace=namespace, certs_dir=certs_dir,
            allow_insecure_network=allow_insecure_network, max_wait=max_wait))
    if any(value is not None for value in (namespace, certs_dir,
                                           allow_insecure_network, max_wait)):
        raise ConfigError("load('%s', ...): namespace, certs_dir, "
                          "allow_insecure_network and max_wait are of a living "
                          "job: leave them out" % os.fspath(path))
    return _load_run(path)


def _load_run(path: Union[str, "os.PathLike[str]"]) -> Parameters:
    folder = os.fspath(path)
    if os.path.exists(os.path.join(folder, _MANIFEST)):
        folders = [folder]
    else:
        folders = _newest_first(folder)
    damages: List[str] = []
    for each in folders:
        try:
            return _read(each)
        except (_Damage, OSError) as error:
            damages.append("checkpoint '%s' is not usable: %s" % (each, error))
            if each != folders[-1]:
                warnings.warn("%s; trying the one before it" % damages[-1],
                              stacklevel=3)
    raise CheckpointError("load('%s'): no checkpoint is usable: %s" %
                          (folder, "; ".join(damages)))


def _newest_first(train_dir: str) -> List[str]:
    try:
        names = os.listdir(train_dir)
    except OSError as error:
        raise CheckpointError("load('%s'): %s: wanted the train_dir of a run" %
                              (train_dir, error.strerror)) from None
    steps = sorted((int(match.group(1)) for match in map(_NAME.match, names)
                    if match), reverse=True)
    if not steps:
        raise CheckpointError("load('%s'): there is no checkpoint in it" %
                              train_dir)
    return [os.path.join(train_dir, "ckpt-%012d" % step) for step in steps]


def _manifest(folder: str) -> Tuple[Dict[str, int], List[int], List[str]]:
    """The bytes of each file; the CRCs of all tensors, in the files' order; the
    texts of the tables' TableDefs."""
    with open(os.path.join(folder, _MANIFEST), "rb") as file:
        every = file.read()
    text, line, crc = every.rpartition(_CRC_LINE)
    if not line or crc != b"%08x\n" % crc32c(text):
        raise _Damage("the manifest's last line does not fit: it is damaged or "
                      "was edited")
    words = text.decode("utf-8")
    version = int(_field(words, "format_version"))
    if version > _FORMAT:
        raise CheckpointError(
            "load: '%s' has format version %d (of Muster %s), this package "
            "reads up to %d: install the newer wheel" %
            (folder, version, _field(words, "muster_version").strip('"'),
             _FORMAT))
    files = {_field(block, "name").strip('"'): int(_field(block, "bytes"))
             for block in _blocks(words, "files")}
    return (files, [int(_field(block, "crc32c"))
                    for block in _blocks(words, "tensors")],
            [_blocks(block, "definition", "  ")[0]
             for block in _blocks(words, "tables")])


def _blocks(text: str, name: str, indent: str = "") -> List[str]:
    """The messages of that name that stand so far in, as protobuf prints
    them."""
    return re.findall(r"^%s%s \{\n((?:%s  .*\n)*)%s\}$" %
                      (indent, name, indent, indent), text, re.MULTILINE)


def _string(literal: str) -> str:
    """What protobuf prints so: bytes that are no ASCII are octal."""
    plain = literal[1:-1].encode("ascii").decode("unicode_escape")
    return plain.encode("latin-1").decode("utf-8")


def _field(text: str, name: str) -> str:
    match = re.search(r"^ *%s: (.*)$" % name, text, re.MULTILINE)
    return match.group(1) if match else "0"


def _read(folder: str) -> Parameters:
    """The parameters, when all of the checkpoint has been checked."""
    files, crcs, definitions = _manifest(folder)
    found: Dict[str, Dict[str, numpy.ndarray]] = {}
    for name, size in files.items():
        path = os.path.join(folder, name)
        if os.path.getsize(path) != size:
            raise _Damage("'%s' has %d bytes, the manifest has %d" %
                          (name, os.path.getsize(path), size))
        found[name] = _tensors(path)
    tensors = [(key, value) for name in files
               for key, value in found[name].items()]
    if len(tensors) != len(crcs) or _PARAMETERS not in found:
        raise _Damage("the files have %d tensors, the manifest has %d" %
                      (len(tensors), len(crcs)))
    for (key, value), crc in zip(tensors, crcs):
        if crc32c(value) != crc:
            raise _Damage("tensor '%s' is damaged: its CRC does not fit" % key)
    return Parameters(found[_PARAMETERS],
                      _tables(definitions, found.get(_TABLES, {})))


def _tables(definitions: List[str],
            tensors: Dict[str, numpy.ndarray]) -> Dict[str, SavedTable]:
    """Those of a checkpoint, in the manifest's order; the file has its own."""
    tables = {}
    for definition in definitions:
        name = _string(_field(definition, "name"))
        dim = int(_field(definition, "dim"))
        try:
            ids, values = tensors[name + "/ids"], tensors[name + "/values"]
        except KeyError:
            raise _Damage("'%s' lacks table '%s' of the manifest" %
                          (_TABLES, name)) from None
        if values.shape != (len(ids), dim):
            raise _Damage("table '%s' has values %s in '%s', and by the "
                          "manifest rows of %d" %
                          (name, list(values.shape), _TABLES, dim))
        tables[name] = SavedTable(definition, name, ids, values)
    return tables


def _tensors(path: str) -> Dict[str, numpy.ndarray]:
    """Those of a safetensors file, in the order of their bytes."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _MAX_HEADER_BYTES:
            raise _Damage("'%s' has a header of %d bytes" % (path, length))
        try:
            header: Dict[str, Any] = json.loads(file.read(length))
            return {name: _tensor(file, 8 + length, entry)
                    for name, entry in sorted(
                        header.items(),
                        key=lambda item: item[1]["data_offsets"])
                    if name != "__metadata__"}
        except (ValueError, KeyError, TypeError) as error:
            raise _Damage("'%s' has no header of tensors: %s" %
                          (path, error)) from None


def _tensor(file: Any, start: int, entry: Dict[str, Any]) -> numpy.ndarray:
    begin, end = entry["data_offsets"]
    file.seek(start + begin)
    return numpy.frombuffer(bytearray(file.read(end - begin)),
                            _DTYPES[entry["dtype"]]).reshape(entry["shape"])
