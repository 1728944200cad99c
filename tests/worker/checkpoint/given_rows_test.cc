#include "worker/checkpoint/given_rows.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/train_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/table_fixture.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/reported_lines.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/checkpoint/fake_row_shards.h"
#include "worker/checkpoint/initial_weights.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TableDef Adagrad(const std::string& name, int64_t dim) {
  TableDef table = MakeTable(name, dim);
  for (const auto& [attr, value] :
       {std::pair("learning_rate", 1.0),
        std::pair("initial_accumulator_value", 0.5)}) {
    Attr* const added = table.mutable_optimizer()->add_attr();
    added->set_name(attr);
    added->set_f(value);
  }
  return table;
}

// --init_from of a model with tables.
class GivenRowsTest : public ::testing::Test {
 protected:
  GivenRowsTest() {
    options_.path = absl::StrCat("train/", CheckpointName(7));
    options_.tables = {Adagrad("user", 2)};
  }
  void Save(const std::vector<ExampleTable>& tables) {
    EXPECT_THAT(SaveTablesExample(&fs_, "train", 7, tables), IsOk());
  }
  absl::StatusOr<std::unique_ptr<InitialWeights>> Open() {
    return InitialWeights::Open(&fs_, options_, SmallParameters());
  }
  void ExpectRefused(const std::string& first, const std::string& second) {
    EXPECT_THAT(Open(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 AllOf(HasSubstr("--init_from="),
                                       HasSubstr(first), HasSubstr(second))));
  }

  FakeFileSystem fs_{"train"};
  InitialWeights::Options options_;
  const ExampleTable user_ = MakeExampleTable("user", 2, {0, 1, -1, 9});
};

TEST_F(GivenRowsTest, AllRows_BeginWithoutUpdatesAndWithFreshSlots) {
  Save({user_});
  const auto weights = Open();
  ASSERT_THAT(weights, IsOk());
  FakeRowShards shards(2, {MakeSavedTable(options_.tables[0], 0)});
  ASSERT_THAT((*weights)->rows().Load([&](int table, const RowBlock& rows) {
    for (const int64_t t : rows.updates()) EXPECT_EQ(t, 0);
    for (const float slot : rows.floats(RowBlock::kValues + 1)) {
      EXPECT_EQ(slot, 0.5f);
    }
    const std::vector<int64_t> ids(rows.ids().begin(), rows.ids().end());
    EXPECT_EQ(rows.stream_bytes(RowBlock::kValues),
              MakeRows(user_.saved, ids).stream_bytes(RowBlock::kValues));
    return shards.Load(table, rows);
  }),
              IsOk());
  EXPECT_EQ(shards.rows(0), 4);
}

TEST_F(GivenRowsTest, ATableThatTheCheckpointLacks_IsAnErrorOrSaid) {
  Save({});
  ExpectRefused("lacks the model's tables user", "--init_from_partial");
  options_.partial = true;
  const auto weights = Open();
  ASSERT_THAT(weights, IsOk());
  EXPECT_THAT((*weights)->remarks(),
              Contains("not in the file, begins without rows: table 'user'"));
  EXPECT_THAT((*weights)->rows().missing(), ElementsAre("user"));
  EXPECT_THAT((*weights)->rows().Load([](int, const RowBlock&) {
    return absl::InternalError("there are none");
  }),
              IsOk());
}

TEST_F(GivenRowsTest, ATableThatTheModelLacks_IsAnErrorOrSaid) {
  Save({user_, MakeExampleTable("item", 2, {5})});
  ExpectRefused("the model lacks its tables item", "--init_from_partial");
  options_.partial = true;
  const auto weights = Open();
  ASSERT_THAT(weights, IsOk());
  EXPECT_THAT((*weights)->remarks(),
              Contains("not in the model, passed over: table 'item'"));
}

TEST_F(GivenRowsTest, AnotherDim_IsNamed) {
  Save({MakeExampleTable("user", 3, {5})});
  options_.partial = true;
  ExpectRefused("table 'user' wants 'user/ids' of I64 [n]", "[1, 3] of F32");
}

TEST_F(GivenRowsTest, AValueThatIsNotFinite_IsNamed) {
  const auto writer = CheckpointWriter::Create({&fs_, "train", 7, Retention()},
                                               {}, {}, {user_.saved});
  ASSERT_THAT(writer, IsOk());
  RowBlock rows = MakeRows(user_.saved, user_.ids);
  reinterpret_cast<float*>(rows.stream_data(RowBlock::kValues))[5] = INFINITY;
  ASSERT_THAT((*writer)->AppendRows(0, rows), IsOk());
  ASSERT_THAT((*writer)->Commit(ExampleManifest(7)), IsOk());
  EXPECT_THAT(InitialWeights::Open(&fs_, options_, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("'user/values': element 5 is inf")));
}

// As `musterctl checkpoint export` writes them.
TEST_F(GivenRowsTest, AFileWithIdsAndValues_GivesRows) {
  EXPECT_THAT(fs_.CreateFolder("train/files"), IsOk());
  options_.path = "train/files/w";
  const RowBlock rows = MakeRows(user_.saved, user_.ids);
  const auto writer =
      SafetensorsWriter::Create(&fs_, options_.path,
                                {{"user/ids", INT64, Shape({4})},
                                 {"user/values", FLOAT32, Shape({4, 2})},
                                 {"w", FLOAT32, Shape({1})}});
  ASSERT_THAT(writer, IsOk());
  ASSERT_THAT((*writer)->AppendTo(0, rows.stream_bytes(RowBlock::kIds)),
              IsOk());
  ASSERT_THAT((*writer)->AppendTo(1, rows.stream_bytes(RowBlock::kValues)),
              IsOk());
  ASSERT_THAT((*writer)->AppendTo(2, std::string(4, '\0')), IsOk());
  ASSERT_THAT((*writer)->Finish(), IsOk());
  const auto weights =
      InitialWeights::Open(&fs_, options_, {MakeTensor("w", {1})});
  ASSERT_THAT(weights, IsOk());
  int64_t loaded = 0;
  ASSERT_THAT((*weights)->rows().Load([&](int, const RowBlock& block) {
    loaded += block.rows();
    return absl::OkStatus();
  }),
              IsOk());
  EXPECT_EQ(loaded, 4);
}

}  // namespace
}  // namespace muster
