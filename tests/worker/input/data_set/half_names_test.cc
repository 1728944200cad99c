#include "worker/input/data_set/half_names.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/summary/event_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/example.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "tests/worker/input/file/npy_fixture.h"
#include "worker/input/data_set/create_data_set.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(HalfNamesTest, AHalfIsTheBeginningOrAWordOfAName) {
  for (const char* name :
       {"train.csv", "training.csv", "mnist-train.tfrecord-00000-of-00001",
        "X_train.npy", "x_Train_1.npy", "a.train.csv"}) {
    EXPECT_TRUE(NamesHalf(name, Split::kTrain)) << name;
    EXPECT_FALSE(NamesHalf(name, Split::kTest)) << name;
  }
  for (const char* name :
       {"latest.npz", "mnist.npz", "x_tests.npy", "pretrain.csv"}) {
    EXPECT_FALSE(NamesHalf(name, Split::kTrain)) << name;
    EXPECT_FALSE(NamesHalf(name, Split::kTest)) << name;
  }
}

// One example of one number, as npy.
std::string Example(float value) {
  return Npy(NpyText("<f4", "(1, 1)"), RawBytes<float>({value}));
}
std::string Label(int64_t value) {
  return Npy(NpyText("<i8", "(1,)"), RawBytes<int64_t>({value}));
}

// A file of the names that a library gives it, found in a folder.
class OtherNamesTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<DataSet>> Open(
      const std::string& type, Split split,
      LabelKind labels = LabelKind::kClass) {
    InputSpec spec;
    spec.set_type(type);
    spec.set_dir(dir_);
    return CreateDataSet(spec, Shape({1}), /*seed=*/1, split, {labels});
  }

  // The value and the label of the one row of a half.
  std::vector<float> Row(const std::string& type, Split split) {
    const auto data_set = Open(type, split);
    EXPECT_THAT(data_set, IsOk());
    if (!data_set.ok()) return {};
    EXPECT_EQ((*data_set)->num_examples(), 1);
    std::vector<float> row(1);
    int32_t label = -1;
    EXPECT_THAT((*data_set)->Read(0, {row.data(), &label}), IsOk());
    row.push_back(static_cast<float>(label));
    return row;
  }

  const std::string dir_ = MakeTempDir();
};

TEST_F(OtherNamesTest, NpyOfXAndYIsFound) {
  WriteFile(dir_, "X_train.npy", Example(3));
  WriteFile(dir_, "Y_train.npy", Label(1));
  WriteFile(dir_, "x_test.npy", Example(4));
  WriteFile(dir_, "y_test.npy", Label(0));
  EXPECT_THAT(Row("npy", Split::kTrain), ElementsAre(3, 1));
  EXPECT_THAT(Row("npy", Split::kTest), ElementsAre(4, 0));
  EXPECT_THAT(Open("npy", Split::kTest, LabelKind::kNone), IsOk());
}

TEST_F(OtherNamesTest, NpzOfBothHalvesIsFound) {
  const std::string both = Npz({{"x_test", Example(4)},
                                {"x_train", Example(3)},
                                {"y_train", Label(1)},
                                {"y_test", Label(0)}});
  for (const char* name : {"mnist.npz", "train_test.npz"}) {
    const std::string path = WriteFile(dir_, name, both);
    EXPECT_THAT(Row("npy", Split::kTrain), ElementsAre(3, 1)) << name;
    EXPECT_THAT(Row("npy", Split::kTest), ElementsAre(4, 0)) << name;
    EXPECT_THAT(Open("npy", Split::kTest, LabelKind::kNone), IsOk());
    ASSERT_EQ(std::remove(path.c_str()), 0);
  }
}

TEST_F(OtherNamesTest, NpzWithoutTheHalfIsNotTakenForIt) {
  const std::string path =
      WriteFile(dir_, "data.npz", Npz({{"x", Example(3)}, {"y", Label(1)}}));
  for (const Split split : {Split::kTrain, Split::kTest}) {
    EXPECT_THAT(Open("npy", split),
                StatusIs(absl::StatusCode::kNotFound,
                         AllOf(HasSubstr("data.npz"), HasSubstr("x, y"))));
  }
  ASSERT_EQ(rename(path.c_str(), (dir_ + "/train.npz").c_str()), 0);
  EXPECT_THAT(Row("npy", Split::kTrain), ElementsAre(3, 1));
  EXPECT_THAT(Open("npy", Split::kTest), StatusIs(absl::StatusCode::kNotFound));
}

std::string Record(float value, int64_t label) {
  muster::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["x"].mutable_float_list()->add_value(value);
  features["label"].mutable_int64_list()->add_value(label);
  std::string record;
  AppendRecord(example.SerializeAsString(), &record);
  return record;
}

TEST_F(OtherNamesTest, TfRecordsOfTfdsAreFound) {
  WriteFile(dir_, "mnist-train.tfrecord-00000-of-00001", Record(3, 1));
  WriteFile(dir_, "mnist-test.tfrecord-00000-of-00001", Record(4, 0));
  WriteFile(dir_, "features.json", "{}");
  EXPECT_THAT(Row("tfrecord", Split::kTrain), ElementsAre(3, 1));
  EXPECT_THAT(Row("tfrecord", Split::kTest), ElementsAre(4, 0));
}

TEST_F(OtherNamesTest, TwoSetsAreRefused) {
  WriteFile(dir_, "mnist-train.tfrecord-00000-of-00001", Record(3, 1));
  WriteFile(dir_, "kmnist-train.tfrecord-00000-of-00001", Record(4, 0));
  EXPECT_THAT(Open("tfrecord", Split::kTrain),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("are of two sets")));
}

TEST_F(OtherNamesTest, OtherNamesAreNoneBesideOurs) {
  WriteFile(dir_, "train.csv", "x,label\n3,1\n");
  WriteFile(dir_, "old_train.csv", "x,label\n5,1\n");
  WriteFile(dir_, "kaggle_test.csv", "x,label\n4,0\n");
  EXPECT_THAT(Row("csv", Split::kTrain), ElementsAre(3, 1));
  EXPECT_THAT(Row("csv", Split::kTest), ElementsAre(4, 0));
  ASSERT_EQ(std::remove((dir_ + "/kaggle_test.csv").c_str()), 0);
  WriteFile(dir_, "train_test.csv", "x,label\n4,0\n");
  EXPECT_THAT(Open("csv", Split::kTest),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("begin with test (or are as NAME-test)")));
}

}  // namespace
}  // namespace muster
