#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "worker/input/data_set/create_data_set.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

// Pixel p of channel c is 10 * c + p % 10.
std::string Pixels() {
  std::string pixels;
  for (int c = 0; c < 3; ++c) {
    for (int p = 0; p < 1024; ++p) {
      pixels.push_back(static_cast<char>(10 * c + p % 10));
    }
  }
  return pixels;
}

std::vector<float> Scaled(const std::string& bytes) {
  std::vector<float> values;
  for (const char byte : bytes) {
    values.push_back(static_cast<float>(static_cast<uint8_t>(byte)) / 255.0f);
  }
  return values;
}

class CifarPartTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<DataSet>> Open(const std::string& content) {
    InputSpec spec;
    spec.set_type("cifar");
    spec.set_dir(dir_);
    WriteFile(dir_, "train.bin", content);
    return CreateDataSet(spec, Shape({3, 32, 32}), /*seed=*/1, Split::kTrain);
  }

  static int32_t Read(const DataSet& data_set, int64_t row,
                      std::vector<float>* values) {
    values->assign(3072, -1.0f);
    int32_t label = -1;
    EXPECT_THAT(data_set.Read(row, {values->data(), &label}), IsOk());
    return label;
  }

  const std::string dir_ = MakeTempDir();
  std::vector<float> values_;
};

TEST_F(CifarPartTest, Cifar10_GivesLabelsAndPixels) {
  const std::string zeros(3072, '\0');
  const auto data_set = Open("\x03" + zeros + "\x09" + Pixels());
  ASSERT_THAT(data_set, IsOk());
  EXPECT_EQ((*data_set)->num_examples(), 2);
  EXPECT_EQ((*data_set)->num_classes(), 10);
  EXPECT_EQ(Read(**data_set, 0, &values_), 3);
  EXPECT_THAT(values_, Each(0.0f));
  EXPECT_EQ(Read(**data_set, 1, &values_), 9);
  EXPECT_EQ(values_, Scaled(Pixels()));
}

TEST_F(CifarPartTest, Cifar100InGzip_GivesFineLabels) {
  const auto data_set = Open(Gzip("\x13\x63" + Pixels()));
  ASSERT_THAT(data_set, IsOk());
  EXPECT_EQ((*data_set)->num_classes(), 100);
  EXPECT_EQ(Read(**data_set, 0, &values_), 99);
  EXPECT_EQ(values_, Scaled(Pixels()));
}

TEST_F(CifarPartTest, LabelOutOfRange_IsRefusedWithItsRow) {
  EXPECT_THAT(Open("\x09" + Pixels() + "\x0a" + Pixels()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("row 1 of '"), HasSubstr("train.bin'"),
                             HasSubstr("from 0 to 9, found 10"))));
}

TEST_F(CifarPartTest, EveryTruncation_IsRefused) {
  const std::string whole = "\x01" + Pixels();
  EXPECT_THAT(Open(""), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("an empty file")));
  for (size_t size = 61; size < whole.size(); size += 61) {
    EXPECT_THAT(Open(whole.substr(0, size)),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("wanted rows of 3073 bytes (CIFAR-10) or "
                                   "3074 (CIFAR-100)")));
  }
}

}  // namespace
}  // namespace muster
