#include "worker/metric/class_table.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(ClassTableTest, NamesStayInTheirCells) {
  EXPECT_THAT(
      ClassTableLines({{"a|b\n", 12, 0.5, 1, 2.0 / 3}, {"7", 3, 0, 0, 0}}),
      testing::ElementsAre(
          "| name   |   rows | precision | recall |     f1 |",
          "| ------ | -----: | --------: | -----: | -----: |",
          "| a\\|b\\n |     12 |    0.5000 | 1.0000 | 0.6667 |",
          "| 7      |      3 |    0.0000 | 0.0000 | 0.0000 |"));
}

}  // namespace
}  // namespace muster
