#include "worker/training/table_defs.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/config/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/training/place_model.h"
#include "worker/training/without_model.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kAdam[] =
    "optimizer { name: 'adam' attr { name: 'learning_rate' f: 0.1 } } ";

TrainingSpec Training(const std::string& more,
                      const std::string& optimizer = kAdam) {
  TrainingSpec spec;
  EXPECT_THAT(
      ParseTextProto(absl::StrCat(optimizer, "seed: 7 ", more), "t", &spec),
      IsOk());
  return spec;
}

ProgramTable Table(const std::string& name, int64_t dim) {
  ProgramTable table;
  table.set_name(name);
  table.set_dim(dim);
  return table;
}

std::vector<ProgramTable> UserAndItem() {
  return {Table("user", 8), Table("item", 4)};
}

absl::StatusOr<std::vector<TableDef>> Make(
    const std::string& more,
    const std::vector<ProgramTable>& tables = UserAndItem(),
    const std::string& optimizer = kAdam) {
  return MakeTableDefs(Training(more, optimizer), tables);
}

TEST(TableDefsTest, WithoutASetting_ATableHasTheModelsRuleAndDefaults) {
  const auto defs = Make("");
  ASSERT_THAT(defs, IsOk());
  ASSERT_EQ(defs->size(), 2);
  const TableDef& user = (*defs)[0];
  EXPECT_EQ(user.name(), "user");
  EXPECT_EQ(user.dim(), 8);
  EXPECT_EQ(user.optimizer().name(), "adam");
  EXPECT_EQ(user.initial(), UNIFORM);
  EXPECT_EQ(user.scale(), 0.05f);
  EXPECT_EQ(user.seed(), 7);
  EXPECT_EQ(user.max_rows(), 0);
}

TEST(TableDefsTest, TheFirstSettingThatMatches_Counts) {
  const auto defs = Make(
      "table { pattern: 'us.*' dim: 8 initial: ZEROS max_rows: 5000 optimizer "
      "{ "
      "name: 'adagrad' attr { name: 'learning_rate' f: 1 } } }"
      "table { pattern: '.*' scale: 0 }");
  ASSERT_THAT(defs, IsOk());
  EXPECT_EQ((*defs)[0].optimizer().name(), "adagrad");
  EXPECT_EQ((*defs)[0].initial(), ZEROS);
  EXPECT_EQ((*defs)[0].max_rows(), 5000);
  EXPECT_EQ((*defs)[1].optimizer().name(), "adam");
  EXPECT_EQ((*defs)[1].scale(), 0);
}

TEST(TableDefsTest, WrongSettings_AreNamed) {
  const std::string adamw =
      "optimizer { name: 'adamw' attr { name: 'learning_rate' f: 1 } }";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"table { pattern: 'user' dim: 4 }", "program says dim 8"},
      {"table { pattern: 'user' max_rows: -1 }", "table.max_rows"},
      {"table { pattern: 'user' optimizer { name: 'adagard' } }", "adagrad"},
      {"table { pattern: 'user' " + adamw + " }", "weight_decay 0.01"},
      {"table { pattern: 'user' optimizer { name: 'ftrl' attr { name: "
       "'learning_rate' f: 1 } attr { name: 'l2' f: 2 } } }",
       "l2 2"},
  };
  for (const auto& [more, says] : cases) {
    EXPECT_THAT(Make(more).status().message(),
                AllOf(HasSubstr("table 'user'"), HasSubstr(says)));
  }
  EXPECT_THAT(Make("", UserAndItem(), adamw),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("table 'user'"), HasSubstr("adamw"))));
}

TEST(TableDefsTest, AWeightDecayOf0_IsTaken) {
  EXPECT_THAT(
      Make("table { pattern: '.*' optimizer { name: 'adamw' attr { name: "
           "'learning_rate' f: 1 } attr { name: 'weight_decay' f: 0 } "
           "} }"),
      IsOk());
}

TEST(TableDefsTest, APatternWithoutATable_SaysWhichThereAre) {
  EXPECT_THAT(Make("table { pattern: 'users' }"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("table.pattern"), HasSubstr("user"))));
  EXPECT_THAT(Make("table { pattern: 'users' }", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("the program has no tables")));
}

TEST(TableDefsTest, WrongTables_AreNamed) {
  EXPECT_THAT(Make("", {Table("user", 8), Table("user", 4)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'user': two tables")));
  for (const int64_t dim : {int64_t{0}, int64_t{-1}, int64_t{65537}}) {
    EXPECT_THAT(Make("", {Table("user", dim)}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("'user': dim must be from 1 to 65536")));
  }
  EXPECT_THAT(Make("", {Table("user", 65536)}), IsOk());
}

TEST(TableDefsTest, WhatRowsCannotHave_IsNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"replication { all_reduce {} }", "replication.all_reduce"},
      {"replication { async { pull: IN_PLACE } }", "pull: IN_PLACE"},
      {"gradient { codec: 'bf16' }", "gradient.codec"},
      {"gradient { error_feedback: true }", "gradient.error_feedback"},
      {"pull { codec: 'bf16' }", "pull.codec"},
  };
  for (const auto& [more, says] : cases) {
    EXPECT_THAT(Make(more),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(says), HasSubstr("table 'user'"))));
    EXPECT_THAT(Make(more, {}), IsOk());
  }
}

TEST(TableDefsTest, ATableWithATensorsName_IsRefused) {
  TensorDef tensor;
  tensor.set_name("item");
  tensor.add_shape(1);
  tensor.set_dtype(FLOAT32);
  const auto defs = Make("");
  ASSERT_THAT(defs, IsOk());
  TrainingSpec training = Training("");
  FillDefaultsWithoutModel(&training);
  EXPECT_THAT(PlaceModel(training, {tensor}, 1, *defs),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("table 'item': a tensor has this name")));
  tensor.set_name("w");
  const auto placed = PlaceModel(training, {tensor}, 1, *defs);
  ASSERT_THAT(placed, IsOk());
  EXPECT_EQ(placed->tables.size(), 2);
  EXPECT_NE(placed->definition.fingerprint,
            PlaceModel(training, {tensor}, 1)->definition.fingerprint);
}

TEST(TableDefsTest, SettingsWithoutAProgram_AreCheckedAlready) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"table { pattern: '(' }", "table.pattern"},
      {"table { pattern: 'a' dim: -1 }", "table.dim"},
      {"table { pattern: 'a' scale: -1 }", "table.scale"},
      {"table { pattern: 'a' max_rows: -1 }", "table.max_rows"},
      {"table { pattern: 'a' optimizer { name: 'nothing' } }",
       "table.optimizer"},
      {"table { pattern: 'a' optimizer { name: 'adam' schedule { name: "
       "'on_plateau' } } }",
       "table.optimizer.schedule"},
  };
  for (const auto& [more, says] : cases) {
    EXPECT_THAT(CompleteProgramTraining(Training(more)).status().message(),
                HasSubstr(says));
  }
}

}  // namespace
}  // namespace muster
