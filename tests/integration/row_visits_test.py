"""The oracle of row_coverage_test, on weights whose visits are known."""

import struct
import unittest

from tests.integration import harness
from tests.integration import row_visits


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def trained(updates):
    """A row's weight after SGD in float32, updates of so many rows each."""
    weight = 0.0
    for rows in updates:
        gradient = float32(2 * (float32(2 * weight) - 1) / rows)
        weight = float32(
            weight - float32(row_visits.LEARNING_RATE * gradient))
    return weight


def visits(*rows, sizes=(4,)):
    return row_visits.Visits([trained(updates) for updates in rows], sizes)


class VisitsTest(unittest.TestCase):

    def test_every_count_is_read_exactly(self):
        for count in range(row_visits.MOST_VISITS + 1):
            seen = visits([4] * count)
            self.assertEqual((seen.missing(count), seen.surplus(count)), (0, 0))

    def test_a_surplus_makes_up_for_no_missing_row(self):
        seen = visits([4], [4] * 2, [4] * 5, [])
        self.assertEqual((seen.missing(2), seen.surplus(2)), (1 + 2, 3))
        self.assertEqual(str(seen), "1 rows 0 times, 1 rows 1 times, "
                         "1 rows 2 times, 1 rows 5 times")

    def test_updates_of_several_sizes_add_up(self):
        seen = visits([4, 12], [12], [12, 12, 8], sizes=(4, 8, 12))
        self.assertEqual((seen.missing(2), seen.surplus(2)), (1, 1))

    def test_a_weight_of_two_counts_is_held_against_nobody(self):
        seen = visits([4], [8, 8], sizes=(4, 8))
        self.assertEqual((seen.missing(2), seen.surplus(1)), (0, 0))
        self.assertEqual((seen.missing(3), seen.surplus(0)), (2, 2))
        self.assertEqual((seen.most_missing(2), seen.most_missing(3)), (2, 4))

    def test_a_weight_of_no_count_fails(self):
        for weight in (1.5 * trained([4]), -trained([4]),
                       trained([4] * (row_visits.MOST_VISITS + 1))):
            with self.assertRaisesRegex(AssertionError, "row 0: no 0 to 12"):
                row_visits.Visits([weight], (4,))


if __name__ == "__main__":
    harness.main()
