#include "common/checkpoint/manifest.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "common/checkpoint/checked_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/common/checkpoint/table_fixture.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ExampleText() {
  CheckpointManifest manifest = ExampleManifest(4);
  for (const TensorDef& parameter : ExampleParameters()) {
    *manifest.add_parameters() = parameter;
  }
  Attr* const attr = manifest.mutable_optimizer()->add_attr();
  attr->set_name("learning_rate");
  attr->set_f(0.1 + 1e-17);
  return *FormatManifest(manifest);
}

CheckpointManifest ExampleParsed() { return *ParseManifest(ExampleText()); }

OptimizerSpec Optimizer(const std::string& name) {
  OptimizerSpec spec;
  spec.set_name(name);
  return spec;
}

TEST(ManifestTest, SurvivesItsText) {
  const auto manifest = ParseManifest(ExampleText());
  ASSERT_THAT(manifest, IsOk());
  EXPECT_EQ(manifest->model_epoch(), 3);
  EXPECT_EQ(manifest->optimizer().attr(0).f(), 0.1 + 1e-17);
  EXPECT_EQ(*FormatManifest(*manifest), ExampleText());
}

TEST(ManifestTest, NoticesAnEdit) {
  EXPECT_THAT(ParseManifest(
                  absl::StrReplaceAll(ExampleText(), {{"seed: 8", "seed: 9"}})),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("CRC")));
  EXPECT_THAT(ParseManifest(ExampleText() + "seed: 9\n"),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ParseManifest(""), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ParseManifest("{{{"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("line 1")));
}

TEST(ManifestTest, HasTheSmallestFormatThatSaysAllItHolds) {
  CheckpointManifest manifest = ExampleManifest(4);
  EXPECT_EQ(ParseManifest(*FormatManifest(manifest))->format_version(), 4);
  manifest.mutable_schema()->set_format("csv");
  const auto read = ParseManifest(*FormatManifest(manifest));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->format_version(), 5);
  EXPECT_EQ(read->schema().format(), "csv");
  manifest.mutable_evaluations()->set_global_step(4);
  EXPECT_EQ(ParseManifest(*FormatManifest(manifest))->format_version(), 6);
  manifest.mutable_ledger()->set_front(96);
  const auto ledger = ParseManifest(*FormatManifest(manifest));
  ASSERT_THAT(ledger, IsOk());
  EXPECT_EQ(ledger->format_version(), 7);
  EXPECT_EQ(ledger->ledger().front(), 96);
}

void AddUndone(int64_t first, int64_t rows, RowLedger* ledger) {
  RowRange* const range = ledger->add_undone();
  range->set_first(first);
  range->set_rows(rows);
}

// Rows would be trained on twice, or never; its CRC fits all the same.
TEST(ManifestTest, LedgerWhoseRangesOverlap_IsDamage) {
  CheckpointManifest manifest = ExampleManifest(4);
  RowLedger* const ledger = manifest.mutable_ledger();
  ledger->set_front(96);
  AddUndone(0, 32, ledger);
  AddUndone(33, 8, ledger);
  EXPECT_THAT(ParseManifest(*FormatManifest(manifest)), IsOk());
  AddUndone(40, 16, ledger);
  EXPECT_THAT(ParseManifest(*FormatManifest(manifest)),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("damaged: ledger of rows"),
                             HasSubstr("16 rows from 40"))));
}

TEST(ManifestTest, LedgerWithRowsBehindItsFront_IsDamage) {
  CheckpointManifest manifest = ExampleManifest(4);
  manifest.mutable_ledger()->set_front(96);
  AddUndone(90, 8, manifest.mutable_ledger());
  EXPECT_THAT(ParseManifest(*FormatManifest(manifest)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("front")));
}

TEST(ManifestTest, ReadsTheFormatThatKnowsFilesAlone) {
  CheckpointManifest manifest = ExampleManifest(4);
  manifest.mutable_data()->set_num_files(3);
  const auto read = ParseManifest(*FormatManifest(manifest));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->format_version(), 4);
  EXPECT_EQ(read->data().num_files(), 3);
}

TEST(ManifestTest, NamesANewerFormat) {
  CheckpointManifest manifest = ExampleManifest(4);
  manifest.set_muster_version("9.1");
  EXPECT_THAT(ParseManifest(*FormatManifest(manifest, 9)),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("format version 9"), HasSubstr("9.1"),
                             HasSubstr("up to 8"))));
}

// Fields, values and types that no parser of this program takes.
TEST(ManifestTest, ANewerFormatIsNamedWhateverItHolds) {
  const std::string texts[] = {
      "format_version: 9\nlease { holder: \"a\" until: 3 }\n",
      "format_version: 9\nseed: \"a text now\"\n",
      "format_version: 9\nparameters { kind: KIND_OF_LATER }\n",
      "format_version: 9\nsyntax of later <<< }\n"};
  for (const std::string& text : texts) {
    EXPECT_THAT(ParseManifest(WithCrcLine(text)),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("format version 9")))
        << text;
    EXPECT_THAT(ParseManifest(text), StatusIs(absl::StatusCode::kDataLoss))
        << text;
  }
}

// Each level would take some of the stack.
TEST(ManifestTest, DeepNestingIsDamage) {
  std::string text;
  for (int i = 0; i < 1000000; ++i) text += "a{";
  EXPECT_THAT(ParseManifest(text), StatusIs(absl::StatusCode::kDataLoss));
}

// A format of positions has them still.
TEST(ManifestTest, ReadsTheFormatsWhosePositionsAreMessages) {
  for (const int format_version : {3, 4, 5, 6}) {
    const auto read =
        ParseManifest(*FormatManifest(ExampleManifest(4), format_version));
    ASSERT_THAT(read, IsOk()) << format_version;
    EXPECT_EQ(read->workers(0).position().rows(), 4);
    EXPECT_FALSE(read->has_ledger());
  }
}

// The CRC of its manifests covers the positions of then.
TEST(ManifestTest, ReadsTheFormatWhosePositionsAreSteps) {
  CheckpointManifest manifest = ExampleManifest(4);
  manifest.add_workers()->set_data_position(7);
  const auto read = ParseManifest(*FormatManifest(manifest, 2));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->workers().rbegin()->data_position(), 7);
}

TEST(ManifestTest, ReadsTheFirstFormatWhichHasNoLastLine) {
  const std::string text = *FormatManifest(ExampleManifest(4), 1);
  EXPECT_THAT(text, ::testing::Not(HasSubstr("crc32c of the text")));
  EXPECT_THAT(ParseManifest(text), IsOk());
}

TEST(ManifestTest, ALaterFormatWithoutItsLastLineIsDamaged) {
  std::string text = ExampleText();
  text.resize(text.rfind('#'));
  EXPECT_THAT(ParseManifest(text),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("last line")));
}

TEST(CheckCompatibleTest, TakesTheSameModelInAnyOrderAndOtherSettings) {
  std::vector<TensorDef> parameters = ExampleParameters();
  std::swap(parameters[0], parameters[2]);
  parameters[0].set_decay(0.5F);
  EXPECT_THAT(CheckCompatible(ExampleParsed(), parameters, Optimizer("adam")),
              IsOk());
}

TEST(CheckCompatibleTest, NamesTheFirstParameterOfAnotherShape) {
  std::vector<TensorDef> parameters = ExampleParameters();
  parameters[0] = MakeTensor("dense/weights", {3, 5});
  EXPECT_THAT(CheckCompatible(ExampleParsed(), parameters, Optimizer("adam")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'dense/weights'"), HasSubstr("[3, 5]"),
                             HasSubstr("[3, 2]"))));
}

TEST(CheckCompatibleTest, NamesMissingAndSurplusParameters) {
  std::vector<TensorDef> parameters = ExampleParameters();
  parameters.push_back(MakeTensor("dense2/bias", {3}));
  EXPECT_THAT(CheckCompatible(ExampleParsed(), parameters, Optimizer("adam")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'dense2/bias'"),
                             HasSubstr("checkpoint no such parameter"))));
  parameters = ExampleParameters();
  parameters.pop_back();
  EXPECT_THAT(CheckCompatible(ExampleParsed(), parameters, Optimizer("adam")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'bn/mean'"),
                             HasSubstr("model has no such parameter"))));
}

TEST(CheckCompatibleTest, AnotherSetOfFrozenOnesWantsAnotherTrainDir) {
  std::vector<TensorDef> parameters = ExampleParameters();
  parameters[0].set_kind(FROZEN);
  EXPECT_THAT(CheckCompatible(ExampleParsed(), parameters, Optimizer("adam")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr(parameters[0].name()),
                             HasSubstr("(frozen)"), HasSubstr("--init_from"))));
}

CheckpointManifest WithTables(const std::vector<TableDef>& tables) {
  CheckpointManifest manifest = ExampleParsed();
  for (const TableDef& table : tables) {
    *manifest.add_tables() = MakeSavedTable(table, 3);
  }
  return manifest;
}

absl::Status CheckTables(const std::vector<TableDef>& saved,
                         const std::vector<TableDef>& tables) {
  return CheckCompatible(WithTables(saved), ExampleParameters(),
                         Optimizer("adam"), tables);
}

TEST(CheckCompatibleTest, TablesInAnyOrderWithOtherSettings_AreTaken) {
  std::vector<TableDef> tables = {MakeTable("user", 8), MakeTable("item", 4)};
  const std::vector<TableDef> saved = {tables[1], tables[0]};
  tables[0].set_max_rows(7);
  tables[0].set_scale(0.5f);
  EXPECT_THAT(CheckTables(saved, tables), IsOk());
}

TEST(CheckCompatibleTest, AnotherTable_IsNamedWithDimOrRule) {
  const std::vector<TableDef> saved = {MakeTable("user", 8)};
  const std::vector<std::pair<std::vector<TableDef>, std::string>> cases = {
      {{MakeTable("user", 4)}, "rows of 4 with rule 'adagrad'"},
      {{MakeTable("user", 8, "ftrl")}, "rows of 8 with rule 'ftrl'"},
      {{MakeTable("user", 8), MakeTable("item", 4)},
       "the checkpoint no such table"},
      {{}, "the model has no such table"},
  };
  for (const auto& [tables, says] : cases) {
    EXPECT_THAT(
        CheckTables(saved, tables),
        StatusIs(absl::StatusCode::kFailedPrecondition,
                 AllOf(HasSubstr(tables.size() == 2 ? "'item'" : "'user'"),
                       HasSubstr(says))));
  }
  EXPECT_THAT(CheckTables(saved, {MakeTable("customer", 8)}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("table 'customer'")));
}

TEST(ManifestTest, Format8_IsOfTablesAlone) {
  CheckpointManifest manifest = ExampleManifest(1);
  manifest.mutable_ledger();
  EXPECT_EQ(FormatVersionOf(manifest), 7);
  *manifest.add_tables() = MakeSavedTable(MakeTable("user", 8), 3);
  EXPECT_EQ(FormatVersionOf(manifest), 8);
  const auto read = ParseManifest(*FormatManifest(manifest));
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->tables(0).rows(), 3);
}

TEST(CheckCompatibleTest, NamesBothKindsAndBothOptimizers) {
  std::vector<TensorDef> parameters = ExampleParameters();
  parameters[2].set_kind(TRAINABLE);
  EXPECT_THAT(CheckCompatible(ExampleParsed(), parameters, Optimizer("adam")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'bn/mean'"), HasSubstr("(state)"))));
  EXPECT_THAT(
      CheckCompatible(ExampleParsed(), ExampleParameters(), Optimizer("sgd")),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("'adam'"), HasSubstr("'sgd'"))));
}

}  // namespace
}  // namespace muster
