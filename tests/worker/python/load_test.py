"""_load.py and _crc32c.py: checkpoints as the chief writes them, and damage."""

import json
import os
import shutil
import struct
import tempfile
import unittest
import warnings

import muster
import numpy
from muster._crc32c import crc32c
from tests.integration import harness
from tests.worker.python import fake_library


def safetensors(tensors):
    """The bytes of a file; dtypes as numpy's."""
    header, data = {}, b""
    for name, value in tensors.items():
        begin = len(data)
        data += value.tobytes()
        header[name] = {"dtype": {"f": "F", "i": "I"}[value.dtype.kind] +
                        str(8 * value.itemsize), "shape": list(value.shape),
                        "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class RunTestCase(unittest.TestCase):

    def setUp(self):
        self.run = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.run)
        random = numpy.random.default_rng(1)
        self.w = random.standard_normal((3, 2)).astype(numpy.float32)
        self.b = numpy.array(7, numpy.float32)

    def file(self, step, name):
        return os.path.join(self.run, "ckpt-%012d" % step, name)

    def write_manifest(self, step, files, tensors, version, tables=""):
        text = 'format_version: %d\nmuster_version: "0.9"\n' % version
        text += "parameters {\n  name: \"w\"\n  shape: 3\n}\n"
        for name, data in files.items():
            text += "files {\n  name: \"%s\"\n  bytes: %d\n}\n" % (name,
                                                                  len(data))
        for name, value in tensors:
            text += "tensors {\n  name: \"%s\"\n  crc32c: %d\n}\n" % (
                name, crc32c(value))
        text += tables
        text += "# crc32c of the text above: %08x\n" % crc32c(text.encode())
        with open(self.file(step, "manifest.textproto"), "w",
                  encoding="utf-8") as file:
            file.write(text)

    def save(self, step, version=7, tables=None):
        """`tables`: the manifest's words, and the tensors of their file."""
        slots = {"w/t": numpy.array([3]), "w/m": self.w}
        parameters = {"b": self.b, "w": self.w + step}
        files = {"parameters.safetensors": safetensors(parameters),
                 "slots.safetensors": safetensors(slots)}
        words, rows = tables or ("", {})
        if tables:
            files["tables.safetensors"] = safetensors(rows)
        os.mkdir(os.path.dirname(self.file(step, "")))
        for name, data in files.items():
            with open(self.file(step, name), "wb") as file:
                file.write(data)
        self.write_manifest(step, files,
                            [*parameters.items(), *slots.items(),
                             *rows.items()], version, words)

    def flip(self, step, name, at):
        with open(self.file(step, name), "r+b") as file:
            file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))

    def assert_step(self, found, step):
        self.assertEqual(list(found), ["b", "w"])
        numpy.testing.assert_array_equal(found["w"], self.w + step)
        self.assertEqual((found["b"].shape, float(found["b"])), ((), 7))
        self.assertEqual(found["w"].dtype, numpy.float32)
        found["w"] += 1  # It belongs to the caller.


class LoadTest(RunTestCase):

    def test_reads_the_newest_by_number(self):
        for step in (0, 9, 10):
            self.save(step)
        os.mkdir(os.path.join(self.run, ".tmp-ckpt-000000000011"))
        os.mkdir(os.path.join(self.run, "ckpt-12"))
        self.assert_step(muster.load(self.run), 10)

    def test_reads_the_one_that_is_named(self):
        self.save(0)
        self.save(9)
        self.assert_step(muster.load(self.file(0, "")), 0)

    def test_a_flipped_bit_anywhere_is_passed_over_with_a_warning(self):
        for name, at, pattern in (
                ("manifest.textproto", 17, "last line does not fit"),
                ("manifest.textproto", -3, "last line does not fit"),
                ("parameters.safetensors", 9, "no header|damaged"),
                ("parameters.safetensors", -1, "tensor 'w' is damaged"),
                ("slots.safetensors", -1, "tensor 'w/m' is damaged")):
            with self.subTest("%s %d" % (name, at)):
                shutil.rmtree(self.run)
                os.mkdir(self.run)
                self.save(1)
                self.save(2)
                self.flip(2, name, at)
                with self.assertWarnsRegex(UserWarning, pattern):
                    self.assert_step(muster.load(self.run), 1)

    def test_a_file_of_another_length_or_lost_is_passed_over(self):
        for step in (1, 2, 3, 4):
            self.save(step)
        with open(self.file(4, "slots.safetensors"), "ab") as file:
            file.write(b"x")
        os.truncate(self.file(3, "slots.safetensors"), 20)
        os.remove(self.file(2, "parameters.safetensors"))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assert_step(muster.load(self.run), 1)
        self.assertEqual(len(caught), 3)

    def test_none_that_is_whole_is_an_error_with_each(self):
        self.save(1)
        self.flip(1, "parameters.safetensors", -1)
        with self.assertRaisesRegex(muster.CheckpointError,
                                    "no checkpoint is usable: .*tensor 'w'"):
            muster.load(self.run)

    def test_a_newer_format_is_an_error_though_an_older_one_is_there(self):
        self.save(1)
        self.save(2, version=9)
        with self.assertRaisesRegex(muster.CheckpointError,
                                    "version 9 .of Muster 0.9.*newer wheel"):
            muster.load(self.run)

    def test_no_checkpoint_is_an_error(self):
        with self.assertRaisesRegex(muster.CheckpointError, "no checkpoint"):
            muster.load(self.run)
        with self.assertRaisesRegex(muster.CheckpointError,
                                    "No such file .*train_dir"):
            muster.load(os.path.join(self.run, "none"))


def table(name, dim, ids):
    """As the chief writes it: its words in the manifest, and its tensors, in
    which each row has its id in each float."""
    ids = numpy.array(ids, numpy.int64)
    values = numpy.repeat(ids.reshape(-1, 1), dim, 1).astype(numpy.float32)
    words = ("tables {\n  definition {\n    name: \"%s\"\n    dim: %d\n"
             "    optimizer {\n      name: \"adagrad\"\n    }\n"
             "    scale: 0.05\n    seed: 3\n  }\n  slots: \"accumulator\"\n"
             "  rows: %d\n}\n" % (name, dim, len(ids)))
    return words, {name + "/ids": ids, name + "/t": ids * 0 + 1,
                   name + "/values": values, name + "/accumulator": values}


class TablesTest(RunTestCase):

    def setUp(self):
        super().setUp()
        self.library = fake_library.use(fake_library.FakeLibrary(), self)

    def save_tables(self, step, *tables):
        self.save(step, 8, ("".join(words for words, _ in tables),
                            {key: value for _, tensors in tables
                             for key, value in tensors.items()}))

    def test_tables_are_there_by_name(self):
        self.save_tables(1, table("user", 2, [7, -3, 2 ** 60]),
                         table("a/ids", 1, [5]), table("none", 3, []))
        found = muster.load(self.run)
        self.assert_step(found, 1)
        self.assertEqual(list(found.tables), ["user", "a/ids", "none"])
        user = found.tables["user"]
        self.assertEqual((user.name, user.dim, len(user)), ("user", 2, 3))
        self.assertEqual(user.ids.tolist(), [7, -3, 2 ** 60])
        self.assertEqual(user.values[:, 1].tolist(), [7, -3, 2 ** 60])
        self.assertEqual(found.tables["none"].values.shape, (0, 3))

    def test_tables_in_another_order_than_the_manifests_keep_their_rules(self):
        user, item = table("user", 3, [4]), table("item", 1, [5])
        self.save(1, 8, (user[0] + item[0], {**item[1], **user[1]}))
        tables = muster.load(self.run).tables
        self.assertEqual(list(tables), ["user", "item"])
        self.assertEqual(tables["user"].lookup([4, 6]).tolist(),
                         [[4, 4, 4], [12, 12, 12]])
        self.assertIn('name: "user"\n', self.library.spec)

    def test_a_table_that_the_manifest_has_otherwise_is_damage(self):
        user, item = table("user", 3, [4]), table("item", 1, [5])
        for step, tables in enumerate((
                (user[0], item[1]),
                (user[0].replace("dim: 3", "dim: 2"), user[1]))):
            self.save(step, 8, tables)
            with self.assertRaisesRegex(muster.CheckpointError, "table 'user'"):
                muster.load(os.path.dirname(self.file(step, "")))

    def test_a_lookup_gives_first_values_of_ids_without_a_row(self):
        self.save_tables(1, table("user", 2, [7, -3, 4]), table("none", 1, []))
        tables = muster.load(self.run).tables
        # The fake's first values are twice the id.
        self.assertEqual(
            tables["user"].lookup([[-3, 8], [7, 7], [-9, 4]]).tolist(),
            [[[-3, -3], [16, 16]], [[7, 7], [7, 7]], [[-18, -18], [4, 4]]])
        definition = self.library.spec
        self.assertIn('name: "user"\n', definition)
        self.assertIn("seed: 3\n", definition)
        self.assertNotIn("rows", definition)
        self.assertEqual(tables["none"].lookup(5).tolist(), [10])
        self.assertEqual(tables["user"].lookup([]).shape, (0, 2))
        with self.assertRaisesRegex(muster.ConfigError, "whole numbers"):
            tables["user"].lookup([0.5])

    def test_a_damaged_table_is_passed_over_with_a_warning(self):
        self.save_tables(1, table("user", 2, [7]))
        self.save_tables(2, table("user", 2, [8]))
        self.flip(2, "tables.safetensors", -1)
        with self.assertWarnsRegex(UserWarning, "'user/accumulator' is damaged"):
            self.assertEqual(muster.load(self.run).tables["user"].ids, [7])

    def test_a_lost_file_of_tables_is_passed_over(self):
        self.save_tables(1, table("user", 2, [7]))
        self.save(2, 8, (table("user", 2, [8])[0], {}))
        with self.assertWarnsRegex(UserWarning, "lacks table 'user' of the manifest"):
            self.assertEqual(muster.load(self.run).tables["user"].ids, [7])

    def test_a_run_without_tables_has_none(self):
        self.save(1)
        self.assertEqual(muster.load(self.run).tables, {})


class PlaceTest(unittest.TestCase):

    def test_neither_or_both_of_run_and_job_are_refused(self):
        for arguments, found in (({}, "none"),
                                 ({"path": "r", "ps": "h:1"}, "path and ps"),
                                 ({"ps": "h:1", "cluster": "c"},
                                  "ps and cluster")):
            with self.assertRaisesRegex(muster.ConfigError,
                                        "wanted one of .* found " + found):
                muster.load(**arguments)
        with self.assertRaisesRegex(muster.ConfigError, "leave them out"):
            muster.load("r", namespace="cnn")


class Crc32cTest(unittest.TestCase):

    def test_is_castagnolis(self):
        # RFC 3720, B.4.
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(crc32c(bytes(32)), 0x8A9136AA)
        self.assertEqual(crc32c(b""), 0)

    def test_many_bytes_are_as_one_by_one(self):
        # Two blocks of lanes and a rest.
        data = numpy.random.default_rng(2).integers(
            0, 256, (8 << 20) + 3, numpy.uint8).tobytes()
        from muster import _crc32c
        table = _crc32c._tables()[0].tolist()
        crc = 0xFFFFFFFF
        for byte in data:
            crc = table[(crc ^ byte) & 255] ^ crc >> 8
        self.assertEqual(crc32c(data), crc ^ 0xFFFFFFFF)


if __name__ == "__main__":
    harness.main()
