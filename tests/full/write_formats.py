"""Writes Fashion-MNIST anew, in the formats that people have.

  write_formats.py IDX_DIR OUT

A folder each in OUT, for input.dir: npz, csv, tfrecord, png, jpeg; as others
have it, pandas (column-major npy), bgzip (a gzip member a block), emnist (its
names), keras (both halves in one npz), headless (CSV); and idx_by_class, the IDX files with their rows in the order in which an image
folder has them: class by class. Runs in the environment of requirements.txt.
"""

import gzip
import os
import struct
import sys

import numpy
import pandas
import tfrecord
from PIL import Image

# The half's name here, and in IDX files.
HALVES = (("train", "train"), ("test", "t10k"))
# 2051 and 2049: unsigned bytes of three dimensions and of one.
IMAGES_MAGIC = 0x803
LABELS_MAGIC = 0x801
# At most 64 KiB when it is inflated.
BGZIP_BLOCK_BYTES = 0xff00
# As cameras and exporters have it.
JPEG_QUALITY = 95


def read_idx(path):
    with gzip.open(path) as file:
        data = file.read()
    rank = data[3]
    shape = struct.unpack(">%dI" % rank, data[4:4 + 4 * rank])
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * rank).reshape(
        shape)


def write_idx(folder, half, images, labels):
    for kind, magic, values in (("images-idx3", IMAGES_MAGIC, images),
                                ("labels-idx1", LABELS_MAGIC, labels)):
        path = os.path.join(folder, "%s-%s-ubyte" % (half, kind))
        with open(path, "wb") as file:
            file.write(struct.pack(">%dI" % (1 + values.ndim), magic,
                                   *values.shape))
            file.write(values.tobytes())


def write_npz(folder, half, images, labels):
    numpy.savez(os.path.join(folder, half + ".npz"), images=images,
                labels=labels)


def write_csv(folder, half, images, labels, header=True):
    """The numbers that a model reads of the bytes: fractions of 255, each by
    the fewest digits that are this float32."""
    texts = [str(numpy.float32(byte) / numpy.float32(255))
             for byte in range(256)]
    with open(os.path.join(folder, half + ".csv"), "w",
              encoding="ascii") as file:
        if header:
            file.write("label," + ",".join(
                "pixel%d" % i for i in range(images[0].size)) + "\n")
        for image, label in zip(images, labels):
            file.write("%d,%s\n" % (label, ",".join(
                [texts[byte] for byte in image.tobytes()])))


def write_headless(folder, half, images, labels):
    write_csv(folder, half, images, labels, header=False)


def write_pandas(folder, half, images, labels):
    """What to_numpy() has of a table; Fortran order by pandas 3."""
    table = pandas.DataFrame(images.reshape(len(images), -1))
    values = table.to_numpy()
    assert not values.flags.c_contiguous
    numpy.save(os.path.join(folder, "x_%s.npy" % half), values)
    numpy.save(os.path.join(folder, "y_%s.npy" % half), labels)


def write_bgzip(folder, idx_half, images, labels):
    write_idx(folder, idx_half, images, labels)
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.endswith(".gz"):
            continue
        with open(path, "rb") as file, open(path + ".gz", "wb") as out:
            while block := file.read(BGZIP_BLOCK_BYTES):
                out.write(gzip.compress(block, 1))
            out.write(gzip.compress(b""))
        os.remove(path)


def write_emnist(folder, half, images, labels):
    write_idx(folder, "emnist-fashion-" + half, images, labels)


def write_tfrecord(folder, half, images, labels):
    writer = tfrecord.TFRecordWriter(os.path.join(folder, half + ".tfrecord"))
    for image, label in zip(images, labels):
        writer.write({"image": (image.tobytes(), "byte"),
                      "label": (int(label), "int")})
    writer.close()


def write_images(folder, half, images, labels, ending, **options):
    """A folder of files each class; names are row numbers."""
    for label in numpy.unique(labels):
        os.makedirs(os.path.join(folder, half, str(label)))
    for row, (image, label) in enumerate(zip(images, labels)):
        Image.fromarray(image).save(
            os.path.join(folder, half, str(label), "%05d.%s" % (row, ending)),
            **options)


def main(idx_dir, out):
    def folder(name):
        path = os.path.join(out, name)
        os.makedirs(path, exist_ok=True)
        return path

    both = {}
    for half, idx_half in HALVES:
        images, labels = (
            read_idx(os.path.join(idx_dir, "%s-%s-ubyte.gz" % (idx_half, kind)))
            for kind in ("images-idx3", "labels-idx1"))
        for write, name in ((write_npz, "npz"), (write_csv, "csv"),
                            (write_headless, "headless"),
                            (write_pandas, "pandas"),
                            (write_emnist, "emnist"),
                            (write_tfrecord, "tfrecord")):
            write(folder(name), half, images, labels)
        write_bgzip(folder("bgzip"), idx_half, images, labels)
        both["x_" + half], both["y_" + half] = images, labels
        write_images(folder("png"), half, images, labels, "png")
        write_images(folder("jpeg"), half, images, labels, "jpg",
                     quality=JPEG_QUALITY)
        by_class = numpy.argsort(labels, kind="stable")
        write_idx(folder("idx_by_class"), idx_half, images[by_class],
                  labels[by_class])
    numpy.savez_compressed(os.path.join(folder("keras"), "mnist.npz"), **both)


if __name__ == "__main__":
    main(*sys.argv[1:])
