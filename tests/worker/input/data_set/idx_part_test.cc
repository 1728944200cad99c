#include <sys/stat.h>

#include <filesystem>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "worker/input/data_set/create_data_set.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const Shape kShape({1, 2, 3});

absl::StatusOr<std::unique_ptr<DataSet>> Open(
    const std::string& dir, const Shape& shape = kShape,
    Split split = Split::kTrain, LabelKind labels = LabelKind::kClass) {
  InputSpec spec;
  spec.set_type("idx");
  spec.set_dir(dir);
  return CreateDataSet(spec, shape, /*seed=*/1, split, {labels});
}

TEST(IdxPartTest, ScalesBytesToUnitRange) {
  const std::string dir = MakeTempDir();
  WriteDataSet(dir, /*train=*/5, /*test=*/2);
  const auto data_set = Open(dir);
  ASSERT_THAT(data_set, IsOk());
  EXPECT_EQ((*data_set)->num_examples(), 5);
  EXPECT_EQ((*data_set)->example_shape(), kShape);
  EXPECT_EQ((*data_set)->num_classes(), 3);
  std::vector<float> example(6);
  int32_t label = -1;
  ASSERT_THAT((*data_set)->Read(4, {example.data(), &label}), IsOk());
  EXPECT_THAT(example, ElementsAre(40 / 255.f, 41 / 255.f, 42 / 255.f,
                                   43 / 255.f, 44 / 255.f, 45 / 255.f));
  EXPECT_EQ(label, 1);
}

TEST(IdxPartTest, ReadsTheGzipHalf) {
  const std::string dir = MakeTempDir();
  WriteDataSet(dir, /*train=*/5, /*test=*/2);
  const auto data_set = Open(dir, Shape({6}), Split::kTest);
  ASSERT_THAT(data_set, IsOk());
  EXPECT_EQ((*data_set)->num_examples(), 2);
}

// Renames all files of `dir` by putting `to` for `from` in their names.
void Rename(const std::string& dir, const std::string& from,
            const std::string& to) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    paths.push_back(entry.path());
  }
  for (const auto& path : paths) {
    std::filesystem::rename(
        path, path.parent_path() /
                  absl::StrReplaceAll(path.filename().string(), {{from, to}}));
  }
}

TEST(IdxPartTest, FindsTheNamesOfEmnist) {
  const std::string dir = MakeTempDir();
  WriteDataSet(dir, /*train=*/5, /*test=*/2);
  Rename(dir, "train-", "emnist-letters-train-");
  Rename(dir, "t10k-", "emnist-letters-test-");
  const auto train = Open(dir);
  ASSERT_THAT(train, IsOk());
  EXPECT_EQ((*train)->num_examples(), 5);
  const auto test = Open(dir, kShape, Split::kTest);
  ASSERT_THAT(test, IsOk());
  EXPECT_THAT((*test)->Files(),
              ElementsAre(dir + "/emnist-letters-test-images-idx3-ubyte.gz",
                          dir + "/emnist-letters-test-labels-idx1-ubyte.gz"));
  // The archive of EMNIST has six sets in one folder.
  WriteFile(dir, "emnist-digits-train-images-idx3-ubyte", "");
  EXPECT_THAT(
      Open(dir),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("found emnist-digits-train-images-idx3-ubyte, "
                               "emnist-letters-train-images-idx3-ubyte"),
                     HasSubstr("a folder with links"))));
  // The labels of another set are not taken for those of this one.
  ASSERT_EQ(
      std::remove((dir + "/emnist-letters-train-images-idx3-ubyte").c_str()),
      0);
  EXPECT_THAT(Open(dir),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("/emnist-digits-train-labels-idx1-ubyte'")));
}

TEST(IdxPartTest, FindsNamesWithADot) {
  const std::string dir = MakeTempDir();
  WriteDataSet(dir, /*train=*/5, /*test=*/2);
  Rename(dir, "s-idx", "s.idx");
  EXPECT_THAT(Open(dir), IsOk());
  EXPECT_THAT(Open(dir, kShape, Split::kTest), IsOk());
}

TEST(IdxPartTest, SaysWhatToInstallWhenFilesAreMissing) {
  const std::string dir = MakeTempDir();
  EXPECT_THAT(Open(dir),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(dir + "/train-images-idx3-ubyte.gz"),
                             HasSubstr("dataset-fashion-mnist"),
                             HasSubstr("input.dir"))));
}

TEST(IdxPartTest, RefusesAnEmptyFolderName) {
  EXPECT_THAT(Open(""), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("input.dir")));
}

TEST(IdxPartTest, RefusesAnotherNumberOfLabels) {
  const std::string dir = MakeTempDir();
  WriteDataSet(dir, /*train=*/5, /*test=*/2);
  WriteFile(dir, "train-labels-idx1-ubyte", IdxHeader(2049, {1}) + "x");
  EXPECT_THAT(Open(dir),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("5 images"), HasSubstr("1 labels"))));
}

TEST(IdxPartTest, AFolderOfImagesAloneIsEnoughToPredict) {
  const std::string dir = MakeTempDir();
  WriteDataSet(dir, /*train=*/5, /*test=*/2);
  ASSERT_EQ(std::remove((dir + "/train-labels-idx1-ubyte").c_str()), 0);
  EXPECT_THAT(Open(dir), StatusIs(absl::StatusCode::kNotFound));
  const auto data_set = Open(dir, kShape, Split::kTrain, LabelKind::kNone);
  ASSERT_THAT(data_set, IsOk());
  EXPECT_EQ((*data_set)->num_examples(), 5);
  EXPECT_EQ((*data_set)->num_classes(), 0);
  EXPECT_THAT((*data_set)->Files(),
              ElementsAre(dir + "/train-images-idx3-ubyte"));
  std::vector<float> example(6);
  int32_t label = 7;
  ASSERT_THAT((*data_set)->Read(4, {example.data(), &label}), IsOk());
  EXPECT_EQ(example[0], 40 / 255.f);
  EXPECT_EQ(label, 7);
}

TEST(IdxPartTest, NamesTheRowOfTheLargestLabel) {
  const std::string dir = MakeTempDir();
  WriteDataSet(dir, /*train=*/3, /*test=*/2);
  const std::string path = WriteFile(dir, "train-labels-idx1-ubyte",
                                     IdxHeader(2049, {3}) + "\1\xff\2");
  const auto data_set = Open(dir);
  ASSERT_THAT(data_set, IsOk());
  EXPECT_EQ((*data_set)->LargestLabelPlace(), "row 1 of '" + path + "'");
}

TEST(IdxPartTest, RefusesAnotherImageSize) {
  const std::string dir = MakeTempDir();
  WriteDataSet(dir, /*train=*/5, /*test=*/2);
  EXPECT_THAT(Open(dir, Shape({1, 28, 28})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("model.input_shape is [1, 28, 28]"),
                             HasSubstr("are [2, 3]"))));
}

constexpr char kFashionMnist[] = "/usr/share/datasets/fashion-mnist";

// The sums of all pixels were taken from the same package's files
// with Python's gzip module.
struct RealHalf {
  Split split;
  int64_t examples;
  int64_t pixel_sum;
};
constexpr RealHalf kRealHalves[] = {
    {Split::kTrain, 60000, 3431114169},
    {Split::kTest, 10000, 573469082},
};

TEST(IdxPartTest, ReadsFashionMnistWhole) {
  struct stat status;
  if (stat(kFashionMnist, &status) != 0) {
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  }
  for (const RealHalf& half : kRealHalves) {
    const auto data_set = Open(kFashionMnist, Shape({1, 28, 28}), half.split);
    ASSERT_THAT(data_set, IsOk());
    ASSERT_EQ((*data_set)->num_examples(), half.examples);
    EXPECT_EQ((*data_set)->num_classes(), 10);
    std::vector<float> example(28 * 28);
    std::vector<int64_t> per_class(10);
    int64_t pixel_sum = 0;
    for (int64_t i = 0; i < half.examples; ++i) {
      int32_t label;
      ASSERT_THAT((*data_set)->Read(i, {example.data(), &label}), IsOk());
      ++per_class[label];
      for (const float pixel : example) {
        pixel_sum += static_cast<int64_t>(pixel * 255.0f + 0.5f);
      }
    }
    EXPECT_EQ(pixel_sum, half.pixel_sum);
    EXPECT_THAT(per_class, testing::Each(half.examples / 10));
  }
}

}  // namespace
}  // namespace muster
