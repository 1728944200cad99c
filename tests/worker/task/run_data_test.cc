#include "worker/task/run_data.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two columns and two classes, of so many rows.
DataSchema Schema(int64_t rows) {
  DataSchema schema;
  schema.set_format("csv");
  for (const char* name : {"a", "b"}) {
    DataColumn* const column = schema.add_column();
    column->set_name(name);
    column->set_kind("number");
  }
  schema.mutable_label()->set_kind("class");
  schema.mutable_label()->add_class_name("cat");
  schema.mutable_label()->add_class_name("dog");
  schema.mutable_training()->set_rows(rows);
  return schema;
}

TEST(RunFolderTest, IsTheOneThatTheParametersLieIn) {
  const std::string dir = ::testing::TempDir() + "/run_folder";
  std::filesystem::create_directories(dir + "/ckpt-000000000010");
  EXPECT_EQ(RunFolder("run", ""), "run");
  EXPECT_EQ(RunFolder("", ""), "");
  EXPECT_EQ(RunFolder("", "model.safetensors"), ".");
  EXPECT_EQ(RunFolder("", dir + "/model.safetensors"), dir);
  EXPECT_EQ(RunFolder("", dir), dir);
  EXPECT_EQ(RunFolder("", dir + "/"), dir);
  EXPECT_EQ(RunFolder("", dir + "/ckpt-000000000010"), dir);
  EXPECT_EQ(RunFolder("", dir + "/ckpt-000000000010/parameters.safetensors"),
            dir);
}

TEST(DescribeOtherSourceTest, ColumnsAndClassesInAnotherOrderAreSaid) {
  const DataSchema source = Schema(5);
  EXPECT_THAT(DescribeOtherSource(source, Schema(9), false), IsEmpty());
  DataSchema now = Schema(5);
  now.mutable_column()->SwapElements(0, 1);
  now.mutable_label()->set_class_name(0, "zebra");
  EXPECT_THAT(DescribeOtherSource(source, now, /*leaves_out=*/false),
              ElementsAre(HasSubstr("columns a, b, in this order; here they "
                                    "are b, a"),
                          HasSubstr("classes cat, dog, in this order; here "
                                    "they are zebra, dog")));
  EXPECT_THAT(DescribeOtherSource(source, now, /*leaves_out=*/true),
              ElementsAre(HasSubstr("columns")));
}

TEST(CheckRunTrainingTest, AnotherMapOrAnotherTestHalfIsRefused) {
  TrainingSpec training;
  training.set_seed(7);
  EXPECT_THAT(CheckRunTraining(Schema(5), training), IsOk());
  training.mutable_input()->add_map()->set_type("random_flip");
  EXPECT_THAT(CheckRunTraining(Schema(5), training),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("input.map"), HasSubstr("train anew"))));
  DataSchema split = Schema(5);
  split.set_test_fraction(0.25);
  split.set_split_seed(7);
  training.mutable_input()->clear_map();
  training.mutable_input()->set_test_fraction(0.25);
  EXPECT_THAT(CheckRunTraining(split, training), IsOk());
  training.set_seed(9);
  EXPECT_THAT(CheckRunTraining(split, training),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("seed 7"), HasSubstr("seed 9"))));
  training.set_seed(7);
  training.mutable_input()->set_validation_fraction(0.25);
  EXPECT_THAT(CheckRunTraining(split, training),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input.validation_fraction was 0 in the")));
}

TEST(SettleSchemaTest, ColumnsAndClassesAreTheRunsAndRowsAreThoseOfNow) {
  ReportedLines lines;
  DataSchema now = Schema(6);
  now.mutable_column()->SwapElements(0, 1);
  now.mutable_label()->mutable_class_name()->RemoveLast();
  const DataSchema run = Schema(5);
  const auto settled = SettleSchema(&run, now, lines.reporter());
  ASSERT_THAT(settled, IsOk());
  EXPECT_EQ(settled->column(0).name(), "a");
  EXPECT_THAT(settled->label().class_name(), ElementsAre("cat", "dog"));
  EXPECT_EQ(settled->training().rows(), 6);
  EXPECT_THAT(lines.lines(), Contains(HasSubstr("6 examples, were 5")));
}

TEST(SettleSchemaTest, ANewRunHasWhatWasFound) {
  ReportedLines lines;
  const auto settled = SettleSchema(nullptr, Schema(5), lines.reporter());
  ASSERT_THAT(settled, IsOk());
  DataSchema other_rows = Schema(9);
  other_rows.mutable_validation()->set_rows(3);
  EXPECT_TRUE(IsSameData(*settled, other_rows));
  EXPECT_THAT(lines.lines(), IsEmpty());
}

TEST(SettleSchemaTest, AClassThatTheRunDoesNotKnowIsRefused) {
  DataSchema now = Schema(5);
  now.mutable_label()->add_class_name("wasp");
  const DataSchema run = Schema(5);
  EXPECT_THAT(
      SettleSchema(&run, now, Reporter()),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'wasp'")));
  EXPECT_FALSE(IsSameData(run, now));
}

}  // namespace
}  // namespace muster
