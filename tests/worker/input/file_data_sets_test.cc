// The data sets in files of other formats than IDX: each gives the bits that
// the same pixels give as IDX, and names what is wrong with its files.
#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/summary/event_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/example.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/file/npy_fixture.h"
#include "tests/worker/input/idx_fixture.h"
#include "worker/input/create_data_set.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRows = 5;
constexpr int kPixels = 6;

// WriteDataSet's pixels, for comparison.
int Pixel(int row, int pixel) { return 10 * row + pixel; }

std::string PixelBytes(int row) {
  std::string bytes;
  for (int p = 0; p < kPixels; ++p) {
    bytes.push_back(static_cast<char>(Pixel(row, p)));
  }
  return bytes;
}

class FileDataSetsTest : public testing::Test {
 protected:
  FileDataSetsTest() : dir_(MakeTempDir()) { spec_.set_dir(dir_); }

  absl::StatusOr<std::unique_ptr<DataSet>> Open(
      const std::string& type, Split split = Split::kTrain,
      const Shape& shape = Shape({1, 2, 3})) {
    spec_.set_type(type);
    return CreateDataSet(spec_, shape, /*seed=*/1, split);
  }

  static std::vector<float> Values(const DataSet& data_set, int64_t row) {
    std::vector<float> values(data_set.example_shape().num_elements());
    int32_t label = -1;
    EXPECT_THAT(data_set.Read(row, values.data(), &label), IsOk());
    values.push_back(static_cast<float>(label));
    return values;
  }

  // That the data set has the bits of the IDX files of kRows rows.
  void ExpectTheBitsOfIdx(const std::string& type) {
    const auto data_set = Open(type);
    ASSERT_THAT(data_set, IsOk());
    const std::string idx_dir = MakeTempDir();
    WriteDataSet(idx_dir, kRows, kRows);
    spec_.set_dir(idx_dir);
    const auto idx = Open("idx");
    ASSERT_THAT(idx, IsOk());
    ASSERT_EQ((*data_set)->num_examples(), kRows);
    EXPECT_EQ((*data_set)->num_classes(), (*idx)->num_classes());
    for (int i = 0; i < kRows; ++i) {
      EXPECT_EQ(Values(**data_set, i), Values(**idx, i)) << i;
    }
  }

  void WriteNpy(const std::string& part) {
    std::string images;
    std::vector<int64_t> labels;
    for (int i = 0; i < kRows; ++i) {
      images += PixelBytes(i);
      labels.push_back(i % 3);
    }
    WriteFile(dir_, part + "_images.npy",
              Npy(NpyText("|u1", absl::StrCat("(", kRows, ", 2, 3)")), images));
    WriteFile(
        dir_, part + "_labels.npy",
        Npy(NpyText("<i8", absl::StrCat("(", kRows, ",)")), RawBytes(labels)));
  }

  static std::string Record(const std::string& pixels, int64_t label) {
    Example example;
    auto& features = *example.mutable_features()->mutable_feature();
    features["image"].mutable_bytes_list()->add_value(pixels);
    features["label"].mutable_int64_list()->add_value(label);
    std::string record;
    AppendRecord(example.SerializeAsString(), &record);
    return record;
  }

  const std::string dir_;
  InputSpec spec_;
};

TEST_F(FileDataSetsTest, CsvGivesTheBitsOfIdx) {
  std::string text = "a,b,label,c,d,e,f\r\n";
  for (int i = 0; i < kRows; ++i) {
    for (int p = 0; p < kPixels; ++p) {
      // Nine digits: enough for every float.
      char number[32];
      snprintf(number, sizeof(number), "%.9g",
               static_cast<float>(Pixel(i, p)) / 255.0f);
      text += number;
      if (p == 1) absl::StrAppend(&text, ",", i % 3);
      text += p + 1 < kPixels ? "," : "\r\n";
    }
  }
  WriteFile(dir_, "train.csv.gz", Gzip(text));
  ExpectTheBitsOfIdx("csv");
}

TEST_F(FileDataSetsTest, CsvHasTheClassesOfTheTrainingHalf) {
  spec_.set_label_column("kind");
  WriteFile(dir_, "train-1.tsv", "kind\tx\ndog\t1\n");
  WriteFile(dir_, "train-2.tsv", "kind\tx\ncat\t2\nelk\t3\n");
  WriteFile(dir_, "test.tsv", "kind\tx\nelk\t-4.5\n");
  const auto train = Open("csv", Split::kTrain, Shape({1}));
  ASSERT_THAT(train, IsOk());
  EXPECT_THAT(Values(**train, 0), ElementsAre(1, 1));
  EXPECT_THAT(Values(**train, 1), ElementsAre(2, 0));
  const auto test = Open("csv", Split::kTest, Shape({1}));
  ASSERT_THAT(test, IsOk());
  EXPECT_THAT(Values(**test, 0), ElementsAre(-4.5f, 2));
  EXPECT_EQ((*test)->num_classes(), 3);
}

TEST_F(FileDataSetsTest, CsvNamesWhatIsWrong) {
  WriteFile(dir_, "train.csv", "x,label\n1,0\n2\n");
  EXPECT_THAT(Open("csv", Split::kTrain, Shape({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("train.csv"), HasSubstr("line 3"))));
  WriteFile(dir_, "train.csv", "x,y,label\n1,2,0\n");
  EXPECT_THAT(
      Open("csv", Split::kTrain, Shape({1})),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("model.input_shape is [1]"), HasSubstr("[2]"))));
  spec_.set_label_column("class");
  EXPECT_THAT(Open("csv", Split::kTrain, Shape({1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'class'"), HasSubstr("label"))));
}

TEST_F(FileDataSetsTest, NpyGivesTheBitsOfIdx) {
  WriteNpy("train");
  ExpectTheBitsOfIdx("npy");
}

TEST_F(FileDataSetsTest, NpyTurnsChannelsLastIntoChannelsFirst) {
  // Two pixels of three channels.
  const std::vector<float> image = {1, 2, 3, 4, 5, 6};
  WriteFile(dir_, "train_x.npy",
            Npy(NpyText("<f4", "(1, 1, 2, 3)"), RawBytes(image)));
  WriteFile(dir_, "train_y.npy",
            Npy(NpyText("|u1", "(1,)"), std::string(1, '\1')));
  const auto data_set = Open("npy", Split::kTrain, Shape({3, 1, 2}));
  ASSERT_THAT(data_set, IsOk());
  EXPECT_THAT(Values(**data_set, 0), ElementsAre(1, 4, 2, 5, 3, 6, 1));
}

TEST_F(FileDataSetsTest, NpyWantsLabelsForItsExamples) {
  WriteNpy("train");
  ASSERT_EQ(remove((dir_ + "/train_labels.npy").c_str()), 0);
  EXPECT_THAT(Open("npy"), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("0 of labels")));
  WriteFile(dir_, "train_labels.npy",
            Npy(NpyText("<i8", "(1,)"), RawBytes(std::vector<int64_t>{0})));
  EXPECT_THAT(Open("npy"), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("each of 5 examples")));
  WriteFile(dir_, "train_labels.npy",
            Npy(NpyText("<i8", "(5,)"),
                RawBytes(std::vector<int64_t>{0, 1, -7, 0, 0})));
  EXPECT_THAT(Open("npy"), StatusIs(absl::StatusCode::kInvalidArgument,
                                    AllOf(HasSubstr("found -7 in row 2"),
                                          HasSubstr("labels.npy"))));
}

TEST_F(FileDataSetsTest, CifarReadsBothHalves) {
  std::string row(1 + 3 * 32 * 32, '\0');
  row[0] = 7;
  row[1] = static_cast<char>(255);
  WriteFile(dir_, "data_batch_1.bin", row);
  WriteFile(dir_, "data_batch_2.bin", row + row);
  WriteFile(dir_, "test_batch.bin", row);
  const auto train = Open("cifar", Split::kTrain, Shape({3, 32, 32}));
  ASSERT_THAT(train, IsOk());
  EXPECT_EQ((*train)->num_examples(), 3);
  EXPECT_EQ((*train)->num_classes(), 10);
  const std::vector<float> values = Values(**train, 2);
  EXPECT_EQ(values.front(), 1.0f);
  EXPECT_EQ(values[1], 0.0f);
  EXPECT_EQ(values.back(), 7);
  EXPECT_THAT(Open("cifar", Split::kTest, Shape({3, 32, 32})), IsOk());
  EXPECT_THAT(
      Open("cifar", Split::kTest, Shape({3, 28, 28})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[3, 32, 32]")));
}

TEST_F(FileDataSetsTest, TfRecordGivesTheBitsOfIdx) {
  ASSERT_EQ(mkdir((dir_ + "/train").c_str(), 0700), 0);
  std::string first;
  std::string second;
  for (int i = 0; i < kRows; ++i) {
    (i < 2 ? first : second) += Record(PixelBytes(i), i % 3);
  }
  WriteFile(dir_ + "/train", "images.tfrecord-00000-of-00002", first);
  WriteFile(dir_ + "/train", "images.tfrecord-00001-of-00002", second);
  ExpectTheBitsOfIdx("tfrecord");
}

TEST_F(FileDataSetsTest, TfRecordNamesWhatIsWrong) {
  const std::string record = Record(PixelBytes(1), 1);
  WriteFile(dir_, "train.tfrecord", record + Record("short", 1));
  const auto data_set = Open("tfrecord");
  ASSERT_THAT(data_set, IsOk());
  std::vector<float> values(kPixels);
  int32_t label = 0;
  EXPECT_THAT((*data_set)->Read(1, values.data(), &label),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("record 1 of"), HasSubstr("found 5"))));
  spec_.set_label_column("class");
  EXPECT_THAT(Open("tfrecord"), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("'class'")));
  spec_.clear_label_column();
  std::string damaged = record;
  damaged[14] ^= 1;
  WriteFile(dir_, "train.tfrecord", damaged);
  EXPECT_THAT(Open("tfrecord"), StatusIs(absl::StatusCode::kDataLoss,
                                         HasSubstr("train.tfrecord")));
}

TEST_F(FileDataSetsTest, SaysWhichFilesItLookedFor) {
  EXPECT_THAT(Open("csv"), StatusIs(absl::StatusCode::kNotFound,
                                    AllOf(HasSubstr("begin with train"),
                                          HasSubstr(".csv or .tsv"),
                                          HasSubstr("found nothing"))));
  WriteFile(dir_, "training.txt", "");
  EXPECT_THAT(Open("npy", Split::kTest),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("begin with test"),
                             HasSubstr("found training.txt"))));
  spec_.set_dir(dir_ + "/nowhere");
  EXPECT_THAT(Open("cifar", Split::kTrain, Shape({3, 32, 32})),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nowhere")));
  spec_.clear_dir();
  EXPECT_THAT(Open("tfrecord"), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("input.dir")));
}

}  // namespace
}  // namespace muster
