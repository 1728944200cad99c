#include "worker/input/data_set/data_schema.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/utf8.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

DataSchema Parse(const std::string& text) {
  DataSchema schema;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &schema));
  return schema;
}

DataSchema OfRun() {
  return Parse(R"pb(
    format: "csv"
    column { name: "a" kind: "number" }
    column { name: "b" kind: "number" shape: 2 }
    label {
      kind: "class"
      column: "label"
      num_classes: 2
      class_name: "cat"
      class_name: "dog"
    }
    map {
      type: "random_crop"
      attr { name: "padding" i: 4 }
      attr { name: "size" i: 8 }
    }
    map { type: "random_flip" }
    training {
      rows: 10
      files { num_files: 1 bytes: 5 fingerprint: 1 }
    }
  )pb");
}

void ExpectRefused(const DataSchema& now, const std::string& words) {
  EXPECT_THAT(CheckSchemaChange(OfRun(), now),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(words)));
}

TEST(DataSchemaTest, OtherOrderOfColumnsAndFewerClasses_AreFine) {
  DataSchema now = OfRun();
  now.mutable_column()->SwapElements(0, 1);
  now.mutable_label()->mutable_class_name()->DeleteSubrange(0, 1);
  now.add_column()->set_name("c");
  EXPECT_THAT(CheckSchemaChange(OfRun(), now), IsOk());
  now.mutable_label()->Clear();
  now.mutable_label()->set_kind(kNoLabel);
  EXPECT_THAT(CheckSchemaChange(OfRun(), now), IsOk());
}

TEST(DataSchemaTest, MissingColumn_IsRefusedWithTheNearest) {
  DataSchema now = OfRun();
  now.mutable_column(1)->set_name("bb");
  ExpectRefused(now,
                "lack the column 'b' of the run; did you mean 'a'? there "
                "are a, bb");
}

TEST(DataSchemaTest, OtherKindOrShape_IsRefusedWithBothSides) {
  DataSchema now = OfRun();
  now.mutable_column(0)->set_kind("bytes");
  ExpectRefused(now, "column 'a' was number [] in the run, is bytes [] now");
  now = OfRun();
  now.mutable_column(1)->set_shape(0, 3);
  ExpectRefused(now, "column 'b' was number [2] in the run, is number [3] now");
  now.mutable_column(1)->clear_shape();
  now.mutable_column(1)->set_any_shape(true);
  ExpectRefused(now, "is number of any shape now");
}

TEST(DataSchemaTest, OtherMap_IsRefusedFromTheFirstStageThatDiffers) {
  DataSchema now = OfRun();
  now.mutable_map(0)->mutable_attr(0)->set_i(5);
  ExpectRefused(now, R"(input.map: stage 1 was { type: "random_crop" attr)");
  now = OfRun();
  now.mutable_map()->RemoveLast();
  ExpectRefused(now, R"(stage 2 was { type: "random_flip" } in the run, is )"
                     "nothing now; give the model what it was trained on, or "
                     "train anew");
}

TEST(DataSchemaTest, SameMapInOtherWords_IsFine) {
  DataSchema now = OfRun();
  now.mutable_map(0)->mutable_attr()->SwapElements(0, 1);
  now.mutable_map(0)->mutable_attr(0)->set_f(8);
  EXPECT_THAT(CheckSchemaChange(OfRun(), now), IsOk());
}

TEST(DataSchemaTest, OtherLabels_AreRefused) {
  DataSchema now = OfRun();
  now.mutable_label()->set_kind(kTargetsLabel);
  ExpectRefused(now, "the label was class in the run, is targets now");
  now = OfRun();
  now.mutable_label()->set_column(0, "y");
  ExpectRefused(now, "input.label_column was label in the run, is y now");
  now = OfRun();
  now.mutable_label()->clear_class_name();
  ExpectRefused(now, "classes were cat, dog in the run, is numbers now");
  now = OfRun();
  now.mutable_label()->add_class_name("dig");
  ExpectRefused(now,
                "the class 'dig', which the run does not know; did you "
                "mean 'dog'?");
}

TEST(DataSchemaTest, MoreNumberedClassesThanTheRuns_AreRefused) {
  DataSchema run = OfRun();
  run.mutable_label()->clear_class_name();
  DataSchema now = run;
  now.mutable_label()->set_num_classes(1);
  EXPECT_THAT(CheckSchemaChange(run, now), IsOk());
  now.mutable_label()->set_num_classes(3);
  EXPECT_THAT(CheckSchemaChange(run, now),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("was 2 in the run, is 3 now")));
}

TEST(DataSchemaTest, OtherTestFraction_WouldTestOnTrainedRows) {
  DataSchema run = OfRun();
  run.set_test_fraction(0.1);
  run.set_split_seed(1);
  DataSchema now = run;
  EXPECT_THAT(CheckSchemaChange(run, now), IsOk());
  now.set_split_seed(2);
  EXPECT_THAT(CheckSchemaChange(run, now),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("was 0.1 (seed 1) in the run")));
  EXPECT_THAT(CheckSchemaChange(run, OfRun()), IsOk());
}

TEST(DataSchemaTest, OtherValidationFraction_WouldValidateTrainedRows) {
  DataSchema run = OfRun();
  DataSchema now = run;
  now.set_validation_fraction(0.1);
  now.set_split_seed(1);
  EXPECT_THAT(CheckSchemaChange(run, now),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("input.validation_fraction was 0 in the run, "
                                 "is 0.1 (seed 1) now")));
  run = now;
  EXPECT_THAT(CheckSchemaChange(run, now), IsOk());
  now.set_split_seed(2);
  EXPECT_THAT(CheckSchemaChange(run, now),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("was 0.1 (seed 1) in the run")));
}

TEST(DataSchemaTest, MovedRows_AreRefusedForAValidationHalf) {
  DataSchema run = OfRun();
  run.set_validation_fraction(0.1);
  DataFile& file = *run.mutable_training()->mutable_files()->add_files();
  file.set_name("train-0.csv");
  file.set_bytes(10);
  DataSchema now = run;
  now.mutable_training()->mutable_files()->mutable_files(0)->set_bytes(11);
  EXPECT_THAT(CheckSchemaChange(run, now), IsOk()) << "rows were appended";
  now.mutable_training()->mutable_files()->mutable_files(0)->set_bytes(9);
  const auto refused = StatusIs(
      absl::StatusCode::kInvalidArgument,
      HasSubstr("input.validation_fraction: file 1 was 'train-0.csv'"));
  EXPECT_THAT(CheckSchemaChange(run, now), refused);
  now.mutable_validation()->Swap(now.mutable_training());
  now.clear_training();
  EXPECT_THAT(CheckSchemaChange(run, now), refused);
  // A test half of its own files has other ones.
  now.mutable_test()->Swap(now.mutable_validation());
  now.clear_validation();
  EXPECT_THAT(CheckSchemaChange(run, now), IsOk());
}

TEST(DataSchemaTest, CompleteSchema_HasWhatWasFoundAndTheInputsFields) {
  InputSpec input;
  input.set_type("csv");
  *input.mutable_map() = OfRun().map();
  input.set_test_fraction(0.5);
  DataSchema found = OfRun();
  found.clear_map();
  input.set_validation_fraction(0.25);
  const DataSchema schema = CompleteSchema(input, /*seed=*/7, found);
  EXPECT_EQ(schema.map_size(), 2);
  EXPECT_EQ(schema.training().rows(), 10);
  EXPECT_EQ(schema.test_fraction(), 0.5);
  EXPECT_EQ(schema.validation_fraction(), 0.25);
  EXPECT_EQ(schema.split_seed(), 7);
}

TEST(DataSchemaTest, OtherRowsAndFiles_AreSaid) {
  DataSchema now = OfRun();
  EXPECT_THAT(SchemaRemarks(OfRun(), now), IsEmpty());
  now.mutable_training()->set_rows(12);
  now.mutable_training()->mutable_files()->set_fingerprint(2);
  now.mutable_test()->set_rows(12);
  now.set_format("npy");
  EXPECT_THAT(
      SchemaRemarks(OfRun(), now),
      ElementsAre(HasSubstr("input.type is \"npy\", was \"csv\""),
                  AllOf(HasSubstr("the training data are not those of the run"),
                        HasSubstr("there are 12 examples, were 10"))));
  now.clear_training();
  now.set_format("csv");
  EXPECT_THAT(SchemaRemarks(OfRun(), now), IsEmpty());
}

TEST(DataSchemaTest, MessagesAreBoundedAndUtf8_WhateverTheNames) {
  DataSchema run = OfRun();
  DataSchema now = OfRun();
  for (int i = 0; i < 100000; ++i) {
    run.mutable_label()->add_class_name(absl::StrCat("class", i));
  }
  std::string name = "x";
  for (int i = 0; i < 100000; ++i) name += "\xc3\xa9";
  now.mutable_label()->add_class_name(name);
  const absl::Status status = CheckSchemaChange(run, now);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                               HasSubstr("and 99982 others")));
  EXPECT_LT(status.message().size(), 4000);
  EXPECT_TRUE(IsUtf8(status.message()));
}

// The rows of files after another one have other numbers than before.
TEST(DataSchemaTest, WithATestFraction_FilesBeforeOthersMayNotChange) {
  DataSchema run;
  run.set_format("csv");
  run.set_test_fraction(0.5);
  for (const char* name : {"train_2.csv", "train_3.csv"}) {
    DataFile* const file = run.mutable_training()->mutable_files()->add_files();
    file->set_name(name);
    file->set_bytes(10);
  }
  DataSchema now = run;
  DataFiles& files = *now.mutable_training()->mutable_files();
  files.mutable_files(1)->set_bytes(20);
  files.add_files()->set_name("train_4.csv");
  EXPECT_THAT(CheckSchemaChange(run, now), IsOk()) << "rows were appended";
  files.mutable_files(0)->set_name("train_10.csv");
  EXPECT_THAT(CheckSchemaChange(run, now),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("file 1 was 'train_2.csv'")));
  run.set_format("image_folder");
  EXPECT_THAT(CheckSchemaChange(run, now), IsOk()) << "rows go by their names";
}

}  // namespace
}  // namespace muster
