// The weights of rows, of a column and of classes, from files to batches.
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
#include "tests/worker/input/data_set/idx_fixture.h"
#include "tests/worker/input/leases.h"
#include "worker/input/data_set/create_data_set.h"
#include "worker/input/data_set/data_schema.h"
#include "worker/input/fill_batch.h"
#include "worker/input/input_pipeline.h"
#include "worker/input/stream/create_stream.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

LabelSpec Weighted(const std::string& heavy = "", double weight = 1) {
  LabelSpec labels;
  labels.weighted = true;
  if (heavy.empty()) return labels;
  labels.class_weights.emplace_back();
  labels.class_weights.back().set_class_(heavy);
  labels.class_weights.back().set_weight(weight);
  return labels;
}

// "" has no weight.
std::string Record(int64_t label, const std::string& weight) {
  Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["x"].mutable_float_list()->add_value(1);
  features["label"].mutable_int64_list()->add_value(label);
  if (!weight.empty()) {
    features["w"].mutable_float_list()->add_value(std::stof(weight));
  }
  std::string record;
  AppendRecord(example.SerializeAsString(), &record);
  return record;
}

class WeightedRowsTest : public ::testing::Test {
 protected:
  WeightedRowsTest() {
    spec_.set_type("csv");
    spec_.set_dir(dir_);
    spec_.set_weight_column("w");
  }

  absl::StatusOr<std::unique_ptr<DataSet>> Open(const LabelSpec& labels,
                                                Split split = Split::kTrain) {
    return CreateDataSet(spec_, Shape({1}), /*seed=*/1, split, labels);
  }

  std::vector<float> Weights(const LabelSpec& labels,
                             Split split = Split::kTrain) {
    const auto data_set = Open(labels, split);
    EXPECT_THAT(data_set, IsOk());
    if (!data_set.ok()) return {};
    EXPECT_TRUE((*data_set)->has_weights());
    std::vector<float> weights((*data_set)->num_examples());
    std::vector<float> targets((*data_set)->num_targets());
    for (size_t i = 0; i < weights.size(); ++i) {
      float value;
      ExampleMemory into;
      into.values = &value;
      into.targets = targets.empty() ? nullptr : targets.data();
      into.weight = &weights[i];
      EXPECT_THAT((*data_set)->Read(i, into), IsOk());
      EXPECT_EQ(value, 1) << "a weight is no part of the example";
    }
    return weights;
  }

  const std::string dir_ = MakeTempDir();
  InputSpec spec_;
};

TEST_F(WeightedRowsTest, ColumnTimesClass) {
  WriteFile(dir_, "train-1.csv", "w,x,label\n0.5,1,ant\n0,1,bee\n3,1,bee\n");
  WriteFile(dir_, "train-2.csv", "x,label,w\n1,ant,7\n");
  EXPECT_THAT(Weights(Weighted("bee", 10)), ElementsAre(0.5, 0, 30, 7));
}

TEST_F(WeightedRowsTest, ClassesAlone) {
  spec_.clear_weight_column();
  WriteFile(dir_, "train.csv", "x,label\n1,0\n1,2\n1,1\n");
  EXPECT_THAT(Weights(Weighted("2", 5)), ElementsAre(1, 5, 1));
  EXPECT_THAT(Open(Weighted("3", 5)),
              StatusIs(kInvalid, AllOf(HasSubstr("class_weight"),
                                       HasSubstr("'3'"), HasSubstr("0 to 2"))));
}

TEST_F(WeightedRowsTest, RowsWithTargets) {
  WriteFile(dir_, "train.csv", "w,label,x\n2,0.5,1\n0.25,1.5,1\n");
  LabelSpec labels = Weighted();
  labels.kind = LabelKind::kTargets;
  labels.num_targets = 1;
  EXPECT_THAT(Weights(labels), ElementsAre(2, 0.25));
}

TEST_F(WeightedRowsTest, TfRecords) {
  spec_.set_type("tfrecord");
  WriteFile(dir_, "train.tfrecord", Record(0, "0.5") + Record(1, "4"));
  EXPECT_THAT(Weights(Weighted("1", 2)), ElementsAre(0.5, 8));
  WriteFile(dir_, "train.tfrecord", Record(0, "") + Record(1, ""));
  EXPECT_THAT(
      Open(Weighted()),
      StatusIs(kInvalid, AllOf(HasSubstr("'w'"), HasSubstr("train.tfrecord"))));
}

TEST_F(WeightedRowsTest, AHalfWithoutTheColumn_IsRefusedWithTheNearest) {
  spec_.set_weight_column("weight");
  WriteFile(dir_, "train.csv", "x,label,weight\n1,0,1\n");
  WriteFile(dir_, "test.csv", "x,label,weigth\n1,0,1\n");
  EXPECT_THAT(
      Open(Weighted(), Split::kTest),
      StatusIs(kInvalid, AllOf(HasSubstr("test.csv"), HasSubstr("'weight'"),
                               HasSubstr("did you mean 'weigth'"),
                               HasSubstr("input.weight_column"))));
  WriteFile(dir_, "train-2.csv", "x,label\n1,0\n");
  EXPECT_THAT(Open(Weighted()),
              StatusIs(kInvalid, AllOf(HasSubstr("train-2.csv"),
                                       HasSubstr("input.weight_column"))));
}

TEST_F(WeightedRowsTest, WhereNobodyWantsWeights_TheColumnMayBeMissing) {
  LabelSpec none;
  none.kind = LabelKind::kNone;
  for (const char* const rows : {"x,label,w\n1,0,1\n", "x\n1\n"}) {
    WriteFile(dir_, "test.csv", rows);
    const auto test = Open(none, Split::kTest);
    ASSERT_THAT(test, IsOk());
    EXPECT_FALSE((*test)->has_weights());
  }
}

TEST_F(WeightedRowsTest, AColumnThatIsSomethingElse_IsRefused) {
  spec_.set_weight_column("label");
  WriteFile(dir_, "train.csv", "x,label\n1,0\n");
  EXPECT_THAT(Open(Weighted()),
              StatusIs(kInvalid, AllOf(HasSubstr("input.weight_column"),
                                       HasSubstr("labels already"))));
  spec_.set_weight_column("x");
  spec_.set_feature_column("x");
  spec_.set_type("tfrecord");
  WriteFile(dir_, "train.tfrecord", Record(0, "1"));
  EXPECT_THAT(Open(Weighted()),
              StatusIs(kInvalid, AllOf(HasSubstr("input.weight_column"),
                                       HasSubstr("examples already"))));
}

TEST_F(WeightedRowsTest, WeightsThatAreNone_AreBadRecords) {
  for (const char* const bad : {"-1", "nan", "inf", "-0.5", "1e39", "x", ""}) {
    WriteFile(dir_, "train.csv",
              absl::StrCat("x,label,w\n1,0,1\n1,0,", bad, "\n1,0,2\n"));
    spec_.set_on_bad_record(FAIL);
    EXPECT_THAT(Open(Weighted()),
                StatusIs(kInvalid, AllOf(HasSubstr("line 3 of '"),
                                         HasSubstr("column 'w'"))))
        << bad;
    spec_.set_on_bad_record(SKIP);
    EXPECT_THAT(Open(Weighted()), IsOk()) << bad;
  }
}

TEST_F(WeightedRowsTest, ABadWeightOfATfRecord_IsABadRecord) {
  spec_.set_type("tfrecord");
  WriteFile(dir_, "train.tfrecord", Record(0, "1") + Record(1, "-2"));
  const auto data_set = Open(Weighted());
  ASSERT_THAT(data_set, IsOk());
  Batch batch = MakeBatch(**data_set, 2);
  EXPECT_THAT(FillBatchInOrder(**data_set, 0, batch),
              StatusIs(kInvalid, AllOf(HasSubstr("train.tfrecord"),
                                       HasSubstr("found -2"))));
}

TEST_F(WeightedRowsTest, TypesWithoutColumns_RefuseItByName) {
  for (const char* const type : {"npy", "idx", "image_folder", "cifar"}) {
    spec_.set_type(type);
    EXPECT_THAT(Open(Weighted()),
                StatusIs(kInvalid, AllOf(HasSubstr("input.weight_column"),
                                         HasSubstr(type))));
  }
}

TEST_F(WeightedRowsTest, AnEvaluationsBatchHasItsSumOfWeights) {
  WriteFile(dir_, "train.csv", "x,label,w\n1,0,1\n1,1,3\n1,0,5\n");
  const auto data_set = Open(Weighted());
  ASSERT_THAT(data_set, IsOk());
  Batch batch = MakeBatch(**data_set, 2);
  ASSERT_THAT(FillBatchInOrder(**data_set, 0, batch), IsOk());
  EXPECT_EQ(batch.weight, 4);
  EXPECT_THAT(batch.weights(), ElementsAre(FloatEq(0.5), FloatEq(1.5)));
  ASSERT_THAT(FillBatchInOrder(**data_set, 2, batch), IsOk());
  EXPECT_EQ(batch.weight, 5);
  EXPECT_EQ(batch.weights()[0], 1);
}

// A set and a stream: the mean of both batches of a step is 1.
TEST_F(WeightedRowsTest, AStepsBatchesAreWeighedTogether) {
  WriteFile(dir_, "train.csv", "x,label,w\n1,0,1\n1,1,3\n1,0,0\n1,0,2\n");
  const auto data_set = Open(Weighted("1", 2));
  ASSERT_THAT(data_set, IsOk());
  const OpenStream stream = [this] {
    return CreateStream(spec_, Shape({1}), 1, Weighted("1", 2), 2);
  };
  InputPipeline::Options options;
  options.shuffle = false;
  options.batch_size = options.batches_per_step = options.batches_per_tower = 2;
  for (const InputData& data :
       {InputData(data_set->get()), InputData(stream)}) {
    const auto pipeline = InputPipeline::Create(data, options);
    ASSERT_THAT(pipeline, IsOk());
    (*pipeline)->SetLeases({LeaseOf({{0, 4}})}, {});
    const auto batches = (*pipeline)->Next();
    ASSERT_THAT(batches, IsOk());
    // 1, 3 * 2 and 0, 2 by their mean, 9 / 4.
    EXPECT_THAT((*batches)[0].weights(),
                ElementsAre(FloatEq(4 / 9.0f), FloatEq(24 / 9.0f)));
    EXPECT_THAT((*batches)[1].weights(), ElementsAre(0, FloatEq(8 / 9.0f)));
  }
}

TEST_F(WeightedRowsTest, SplitHalvesKeepTheirWeights) {
  std::string rows = "x,label,w\n";
  for (int i = 0; i < 40; ++i) absl::StrAppend(&rows, "1,0,7\n");
  WriteFile(dir_, "train.csv", rows);
  spec_.set_test_fraction(0.5);
  EXPECT_THAT(Weights(Weighted(), Split::kTest), ::testing::Each(7));
}

TEST_F(WeightedRowsTest, AnotherColumnThanTheRuns_IsRefused) {
  const DataSchema run = CompleteSchema(spec_, 1, DataSchema());
  EXPECT_EQ(run.label().weight_column(), "w");
  for (const char* const other : {"", "v"}) {
    spec_.set_weight_column(other);
    EXPECT_THAT(
        CheckSchemaChange(run, CompleteSchema(spec_, 1, run)),
        StatusIs(kInvalid, AllOf(HasSubstr("input.weight_column was 'w'"),
                                 HasSubstr(absl::StrCat("'", other, "'")))));
  }
}

}  // namespace
}  // namespace muster
