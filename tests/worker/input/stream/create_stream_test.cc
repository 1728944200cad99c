#include "worker/input/stream/create_stream.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/summary/event_record.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/example.pb.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/input/data_set/idx_fixture.h"
#include "worker/input/data_set/create_data_set.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 1;
constexpr int64_t kClasses = 3;

std::string Record(const std::vector<float>& x, int64_t label) {
  Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  for (const float value : x) {
    features["x"].mutable_float_list()->add_value(value);
  }
  features["label"].mutable_int64_list()->add_value(label);
  std::string record;
  AppendRecord(example.SerializeAsString(), &record);
  return record;
}

class CreateStreamTest : public testing::Test {
 protected:
  CreateStreamTest() : dir_(MakeTempDir()) { spec_.set_dir(dir_); }

  absl::StatusOr<std::unique_ptr<ExampleStream>> Open(
      const std::string& type, const LabelSpec& labels = {}) {
    spec_.set_type(type);
    return CreateStream(spec_, Shape({2}), kSeed, labels, kClasses, run_);
  }

  // Both values and the label of each row of a pass.
  static std::vector<std::vector<float>> Rows(ExampleStream& stream) {
    EXPECT_THAT(stream.Begin(), IsOk());
    std::vector<std::vector<float>> rows;
    StreamRecord record;
    while (stream.Next(&record).value_or(false)) {
      EXPECT_EQ(record.row, rows.size());
      std::vector<float> row(2);
      int32_t label = -1;
      EXPECT_THAT(stream.Decode(record, /*epoch=*/0, {row.data(), &label}),
                  IsOk());
      row.push_back(static_cast<float>(label));
      rows.push_back(row);
    }
    return rows;
  }

  // That each pass has the rows of the data set.
  void ExpectRowsOfTheDataSet(const std::string& type) {
    const auto stream = Open(type);
    ASSERT_THAT(stream, IsOk());
    const auto data_set =
        CreateDataSet(spec_, Shape({2}), kSeed, Split::kTrain);
    ASSERT_THAT(data_set, IsOk());
    std::vector<std::vector<float>> wanted;
    for (int64_t i = 0; i < (*data_set)->num_examples(); ++i) {
      std::vector<float> row(2);
      int32_t label = -1;
      ASSERT_THAT((*data_set)->Read(i, {row.data(), &label}), IsOk());
      row.push_back(static_cast<float>(label));
      wanted.push_back(row);
    }
    for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(Rows(**stream), wanted);
  }

  // The error of the row that is not as the model reads it.
  absl::Status ErrorOfRow(ExampleStream& stream, int64_t row) {
    EXPECT_THAT(stream.Begin(), IsOk());
    StreamRecord record;
    for (int64_t i = 0; i <= row; ++i)
      EXPECT_THAT(stream.Next(&record), IsOk());
    std::vector<float> values(2);
    int32_t label = 0;
    return stream.Decode(record, /*epoch=*/0, {values.data(), &label});
  }

  const std::string dir_;
  InputSpec spec_;
  std::shared_ptr<const DataSchema> run_;
};

TEST_F(CreateStreamTest, CsvHasTheRowsOfTheDataSet) {
  WriteFile(dir_, "train-1.csv", "label,x,y\n0,1,2\n2,3,\"4\"\n");
  WriteFile(dir_, "train-2.csv.gz", Gzip("label,x,y\n1, 5 ,-6.5\n"));
  WriteFile(dir_, "train-3.csv", "label,x,y\n");
  ExpectRowsOfTheDataSet("csv");
}

TEST_F(CreateStreamTest, TfRecordHasTheRowsOfTheDataSet) {
  WriteFile(dir_, "train.tfrecord-00000-of-00002",
            Record({1, 2}, 0) + Record({3, 4}, 2));
  WriteFile(dir_, "train.tfrecord-00001-of-00002", Gzip(Record({5, 6}, 1)));
  ExpectRowsOfTheDataSet("tfrecord");
}

TEST_F(CreateStreamTest, MapsARowAsTheDataSetDoes) {
  WriteFile(dir_, "train.csv", "label,x,y\n0,1,2\n2,3,4\n1,5,6\n");
  MapSpec& stage = *spec_.add_map();
  stage.set_type("normalize");
  for (const char* const name : {"mean", "std"}) {
    Attr& attr = *stage.add_attr();
    attr.set_name(name);
    attr.set_s("2");
  }
  ExpectRowsOfTheDataSet("csv");
}

TEST_F(CreateStreamTest, CsvHasTargets) {
  WriteFile(dir_, "train.csv", "a,x,b,y\n0.5,1,-1,2\n");
  spec_.set_label_column("b, a");
  const auto stream = Open("csv", {LabelKind::kTargets, 2});
  ASSERT_THAT(stream, IsOk());
  EXPECT_EQ((*stream)->num_targets(), 2);
  StreamRecord record;
  ASSERT_THAT((*stream)->Begin(), IsOk());
  ASSERT_THAT((*stream)->Next(&record), IsOk());
  std::vector<float> values(2);
  std::vector<float> targets(2);
  ASSERT_THAT((*stream)->Decode(record, /*epoch=*/0,
                                {values.data(), nullptr, targets.data()}),
              IsOk());
  EXPECT_THAT(values, ElementsAre(1, 2));
  EXPECT_THAT(targets, ElementsAre(-1, 0.5f));
}

TEST_F(CreateStreamTest, NamesTheLineOfABadCsvRow) {
  WriteFile(dir_, "train.csv",
            "label,x,y\n0,1,2\n0,1\n3,1,2\ncat,1,2\n0,1,two\n0,,2\n");
  const auto stream = Open("csv");
  ASSERT_THAT(stream, IsOk());
  const std::vector<std::string> wanted = {
      "line 3 of", "found 3",
      "found 'cat'; the classes of a stream are numbers", "found 'two'",
      "found none"};
  for (int row = 1; row <= 5; ++row) {
    EXPECT_THAT(ErrorOfRow(**stream, row),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(absl::StrCat("line ", row + 2, " of '",
                                                      dir_, "/train.csv'")),
                               HasSubstr(wanted[row - 1]))));
  }
  EXPECT_THAT(ErrorOfRow(**stream, 0), IsOk());
}

TEST_F(CreateStreamTest, ATfRecordWithAWrongCrcKeepsItsRow) {
  std::string damaged = Record({3, 4}, 1);
  damaged[14] ^= 1;
  const std::string whole = Record({1, 2}, 0) + damaged + Record({5, 6}, 2);
  WriteFile(dir_, "train.tfrecord", whole);
  const auto stream = Open("tfrecord");
  ASSERT_THAT(stream, IsOk());
  EXPECT_THAT(ErrorOfRow(**stream, 1),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("record 1 of"), HasSubstr("CRC"))));
  EXPECT_THAT(ErrorOfRow(**stream, 2), IsOk());
}

TEST_F(CreateStreamTest, ATfRecordFileCutShortAnywhereIsAnError) {
  const std::string first = Record({1, 2}, 0);
  const std::string second = Record({3, 4}, 1);
  for (size_t kept = 1; kept < second.size(); ++kept) {
    WriteFile(dir_, "train.tfrecord", first + second.substr(0, kept));
    const auto stream = Open("tfrecord");
    ASSERT_THAT(stream, IsOk()) << kept;
    ASSERT_THAT((*stream)->Begin(), IsOk());
    StreamRecord record;
    EXPECT_THAT((*stream)->Next(&record), IsOk());
    EXPECT_THAT((*stream)->Next(&record),
                StatusIs(absl::StatusCode::kDataLoss,
                         AllOf(HasSubstr("record 1 of"), HasSubstr("short"))))
        << kept;
  }
}

TEST_F(CreateStreamTest, TheFirstGoodRowShowsWhetherTheModelCanReadThem) {
  WriteFile(dir_, "train.csv", "label,x,y\n7,1,2\n0,1,2\n");
  EXPECT_THAT(Open("csv"), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("line 2 of")));
  spec_.set_on_bad_record(SKIP);
  EXPECT_THAT(Open("csv"), IsOk());
  WriteFile(dir_, "train.csv", "label,x,y\n7,1,2\n");
  EXPECT_THAT(Open("csv"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("1 rows"), HasSubstr("line 2 of"))));
  WriteFile(dir_, "train.csv", "label,x\n0,1\n");
  EXPECT_THAT(Open("csv"), StatusIs(absl::StatusCode::kInvalidArgument,
                                    AllOf(HasSubstr("model.input_shape is [2]"),
                                          HasSubstr("[1]"))));
}

TEST_F(CreateStreamTest, FilesWithTurnedColumnsHaveTheOrderOfTheFirst) {
  WriteFile(dir_, "train-1.csv", "label,x,y\n0,1,2\n");
  WriteFile(dir_, "train-2.csv", "y,x,label\n4,3,1\n");
  WriteFile(dir_, "train-3.csv", "label,x,y\n2,5,6\n");
  ExpectRowsOfTheDataSet("csv");
  const auto stream = Open("csv");
  ASSERT_THAT(stream, IsOk());
  EXPECT_THAT(Rows(**stream),
              ElementsAre(ElementsAre(1, 2, 0), ElementsAre(3, 4, 1),
                          ElementsAre(5, 6, 2)));
}

TEST_F(CreateStreamTest, RecordsOfAnEarlierFileKeepTheirColumns) {
  WriteFile(dir_, "train-1.csv", "label,x,y\n0,1,2\n");
  WriteFile(dir_, "train-2.csv", "y,x,label\n4,3,1\n");
  const auto stream = Open("csv");
  ASSERT_THAT(stream, IsOk());
  ASSERT_THAT((*stream)->Begin(), IsOk());
  StreamRecord first;
  StreamRecord second;
  ASSERT_THAT((*stream)->Next(&first), IsOk());
  ASSERT_THAT((*stream)->Next(&second), IsOk());
  std::vector<float> values(2);
  ASSERT_THAT((*stream)->Decode(first, /*epoch=*/0, {values.data()}), IsOk());
  EXPECT_THAT(values, ElementsAre(1, 2));
}

TEST_F(CreateStreamTest, AColumnThatIsLeftOutIsSaidAtTheOpeningOrRefused) {
  WriteFile(dir_, "train-1.csv", "label,x,y\n0,1,2\n");
  const auto plain = Open("csv");
  ASSERT_THAT(plain, IsOk());
  run_ = std::make_shared<const DataSchema>((*plain)->Schema());
  EXPECT_FALSE(run_->training().has_rows());
  WriteFile(dir_, "train-1.csv", "z,label,x,y\n9,0,1,2\n");
  WriteFile(dir_, "train-2.csv", "label,x,y,z,more\n0,1,2,9,9\n");
  const auto stream = Open("csv");
  ASSERT_THAT(stream, IsOk());
  EXPECT_THAT((*stream)->Remarks(), ElementsAre(HasSubstr("examples: z")));
  StreamRecord record;
  ASSERT_THAT((*stream)->Begin(), IsOk());
  ASSERT_THAT((*stream)->Next(&record), IsOk());
  EXPECT_THAT((*stream)->Next(&record),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("train-2.csv"), HasSubstr("'more'"))));
}

TEST_F(CreateStreamTest, NamesOfClassesAreTheRuns) {
  WriteFile(dir_, "train.csv", "label,x,y\ndog,1,2\ncat,3,4\n");
  spec_.set_type("csv");
  const auto data_set = CreateDataSet(spec_, Shape({2}), kSeed, Split::kTrain);
  ASSERT_THAT(data_set, IsOk());
  run_ = std::make_shared<const DataSchema>((*data_set)->Schema());
  const auto stream = Open("csv");
  ASSERT_THAT(stream, IsOk());
  EXPECT_THAT(Rows(**stream),
              ElementsAre(ElementsAre(1, 2, 1), ElementsAre(3, 4, 0)));
  EXPECT_THAT((*stream)->Schema().label().class_name(),
              ElementsAre("cat", "dog"));
  WriteFile(dir_, "train.csv", "label,x,y\ndog,1,2\nelk,3,4\n");
  const auto other = Open("csv");
  ASSERT_THAT(other, IsOk());
  EXPECT_THAT(ErrorOfRow(**other, 1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("unknown class 'elk'")));
}

TEST_F(CreateStreamTest, ATypeThatIsNoStreamIsRefusedByName) {
  EXPECT_THAT(Open("npy"), StatusIs(absl::StatusCode::kInvalidArgument,
                                    AllOf(HasSubstr("\"npy\""),
                                          HasSubstr("csv and tfrecord can"))));
  EXPECT_THAT(Open("cvs"), StatusIs(absl::StatusCode::kInvalidArgument,
                                    HasSubstr("input.type")));
}

}  // namespace
}  // namespace muster
