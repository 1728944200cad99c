#include "worker/checkpoint/table_transfer.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/train_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/table_fixture.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/checkpoint/fake_row_shards.h"
#include "worker/client/call_status.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kDir[] = "train";

std::vector<int64_t> SomeIds(int64_t count) {
  std::vector<int64_t> ids = {INT64_MIN, INT64_MAX, 0, -1};
  for (int64_t id = 1; id <= count; ++id) ids.push_back(id * 7919 - 40000);
  return ids;
}

class TableTransferTest : public ::testing::Test {
 protected:
  // Both tables without rows.
  FakeRowShards MakeShards(int num_ps) const {
    return {num_ps,
            {MakeSavedTable(tables_[0], 0), MakeSavedTable(tables_[1], 0)}};
  }
  void Fill(FakeRowShards* shards) const {
    const SavedTable user = MakeSavedTable(tables_[0], 0);
    ASSERT_THAT(shards->Load(0, MakeRows(user, SomeIds(50))), IsOk());
    const SavedTable item = MakeSavedTable(tables_[1], 0);
    ASSERT_THAT(shards->Load(1, MakeRows(item, SomeIds(2), 5)), IsOk());
  }
  static ReadTableRows ReaderOf(const FakeRowShards* shards) {
    return [shards](int ps, absl::string_view table, const RowCursor& cursor) {
      return shards->Read(ps, table, cursor);
    };
  }
  static LoadTableRows LoaderOf(FakeRowShards* shards) {
    return [shards](int table, const RowBlock& rows) {
      return shards->Load(table, rows);
    };
  }

  absl::Status Save(const FakeRowShards& shards, FileSystem* files,
                    int64_t step = 7, ReadTableRows read = nullptr) const {
    ASSIGN_OR_RETURN(const std::vector<SavedTable> tables,
                     TablesOf(tables_, shards.Snapshots()));
    ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointWriter> writer,
                     CheckpointWriter::Create({files, kDir, step, Retention()},
                                              {}, {}, tables));
    RETURN_IF_ERROR(
        SaveTables({tables, shards.num_ps(), /*allow_non_finite=*/false,
                    read == nullptr ? ReaderOf(&shards) : std::move(read)},
                   writer.get()));
    return writer->Commit(ExampleManifest(step)).status();
  }
  static std::string BytesOf(const FakeFileSystem& files) {
    return files.Contents(
        absl::StrCat(kDir, "/", CheckpointName(7), "/", kTablesFile));
  }

  const std::vector<TableDef> tables_ = {MakeTable("user", 3),
                                         MakeTable("item", 2)};
};

TEST_F(TableTransferTest, AnyNumberOfPsTasks_GivesTheSameBytes) {
  std::string wanted;
  for (const int num_ps : {1, 2, 3}) {
    FakeRowShards shards = MakeShards(num_ps);
    Fill(&shards);
    FakeFileSystem files(kDir);
    ASSERT_THAT(Save(shards, &files), IsOk());
    if (wanted.empty()) wanted = BytesOf(files);
    EXPECT_GT(wanted.size(), 1000);
    EXPECT_TRUE(BytesOf(files) == wanted) << num_ps;
  }
}

TEST_F(TableTransferTest, ACheckpoint_LoadsOntoAnyOtherNumberOfPsTasks) {
  FakeRowShards shards = MakeShards(2);
  Fill(&shards);
  FakeFileSystem files(kDir);
  ASSERT_THAT(Save(shards, &files), IsOk());
  for (const int num_ps : {1, 2, 3, 7}) {
    const auto newest = CheckpointReader::OpenNewest(&files, kDir);
    ASSERT_THAT(newest, IsOk());
    FakeRowShards restored = MakeShards(num_ps);
    ASSERT_THAT(LoadTables(*newest->reader, tables_, LoaderOf(&restored)),
                IsOk());
    EXPECT_EQ(restored.rows(0), 54);
    EXPECT_EQ(restored.RowOf(1, INT64_MIN), shards.RowOf(1, INT64_MIN));
    FakeFileSystem again(kDir);
    ASSERT_THAT(Save(restored, &again), IsOk());
    EXPECT_TRUE(BytesOf(again) == BytesOf(files)) << num_ps;
  }
}

TEST_F(TableTransferTest, TablesWithoutRows_AreSavedAndLoaded) {
  const FakeRowShards shards = MakeShards(2);
  FakeFileSystem files(kDir);
  ASSERT_THAT(Save(shards, &files), IsOk());
  const auto newest = CheckpointReader::OpenNewest(&files, kDir);
  ASSERT_THAT(newest, IsOk());
  FakeRowShards restored = MakeShards(1);
  EXPECT_THAT(LoadTables(*newest->reader, tables_, LoaderOf(&restored)),
              IsOk());
  EXPECT_EQ(restored.loads, 0);
}

TEST_F(TableTransferTest, AModelWithItsTablesInAnotherOrder_GetsItsRows) {
  FakeRowShards shards = MakeShards(1);
  Fill(&shards);
  FakeFileSystem files(kDir);
  ASSERT_THAT(Save(shards, &files), IsOk());
  const auto newest = CheckpointReader::OpenNewest(&files, kDir);
  ASSERT_THAT(newest, IsOk());
  FakeRowShards restored(
      1, {MakeSavedTable(tables_[1], 0), MakeSavedTable(tables_[0], 0)});
  ASSERT_THAT(LoadTables(*newest->reader, {tables_[1], tables_[0]},
                         LoaderOf(&restored)),
              IsOk());
  EXPECT_EQ(restored.RowOf(0, -1), shards.RowOf(1, -1));
  EXPECT_EQ(restored.RowOf(1, -1), shards.RowOf(0, -1));
}

TEST_F(TableTransferTest, ALoadThatFails_IsNoFaultOfTheFile) {
  FakeRowShards shards = MakeShards(1);
  Fill(&shards);
  FakeFileSystem files(kDir);
  ASSERT_THAT(Save(shards, &files), IsOk());
  const auto newest = CheckpointReader::OpenNewest(&files, kDir);
  ASSERT_THAT(newest, IsOk());
  const absl::Status loaded = LoadTables(
      *newest->reader, tables_,
      [](int, const RowBlock&) { return absl::UnavailableError("gone"); });
  EXPECT_THAT(loaded, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_FALSE(IsOfFile(loaded));
}

// ---- What a ps may answer ---------------------------------------------------

TEST_F(TableTransferTest, AValueThatIsNotFinite_IsNamedByIdAndNotSaved) {
  FakeRowShards shards = MakeShards(1);
  RowBlock rows = MakeRows(MakeSavedTable(tables_[0], 0), {5, 6});
  reinterpret_cast<float*>(rows.stream_data(RowBlock::kValues))[4] = NAN;
  ASSERT_THAT(shards.Load(0, rows), IsOk());
  FakeFileSystem files(kDir);
  EXPECT_THAT(Save(shards, &files),
              StatusIs(absl::StatusCode::kOutOfRange,
                       AllOf(HasSubstr("'user/values': element 1 of the row 6"),
                             HasSubstr("non_finite.allow"))));
  EXPECT_THAT(*files.List(kDir), testing::IsEmpty());
}

TEST_F(TableTransferTest, AnswersThatAreNone_EndTheSave) {
  FakeRowShards shards = MakeShards(1);
  Fill(&shards);
  const auto saves = [&](std::function<void(Frame<SnapshotPart>*)> change) {
    FakeFileSystem files(kDir);
    return Save(
        shards, &files, 7,
        [&](int ps, absl::string_view table,
            const RowCursor& cursor) -> absl::StatusOr<Frame<SnapshotPart>> {
          auto part = shards.Read(ps, table, cursor);
          change(&*part);
          return part;
        });
  };
  using Part = Frame<SnapshotPart>;
  EXPECT_THAT(saves([](Part*) {}), IsOk());
  const auto is_internal = StatusIs(absl::StatusCode::kInternal);
  EXPECT_THAT(saves([](Part* part) { part->data.Append("x"); }), is_internal);
  EXPECT_THAT(
      saves([](Part* part) { part->header.mutable_rows()->set_count(-1); }),
      is_internal);
  EXPECT_THAT(
      saves([](Part* part) { part->header.mutable_rows()->set_table("x"); }),
      is_internal);
  // It ends too early, and never.
  EXPECT_THAT(saves([](Part* part) { part->header.clear_next(); }),
              is_internal);
  EXPECT_THAT(saves([](Part* part) {
                part->header.mutable_rows()->set_count(0);
                part->data.Clear();
                part->header.mutable_next()->set_logical_shard(0);
                part->header.mutable_next()->clear_after_id();
              }),
              is_internal);
}

TEST_F(TableTransferTest, ShardsThatDisagree_AreNamed) {
  FakeRowShards shards = MakeShards(2);
  std::vector<BeginSnapshotReply> snapshots = shards.Snapshots();
  ASSERT_THAT(TablesOf(tables_, snapshots), IsOk());
  snapshots[1].mutable_tables(1)->add_slots("more");
  EXPECT_THAT(TablesOf(tables_, snapshots),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("'item'")));
  snapshots[1].mutable_tables()->RemoveLast();
  EXPECT_THAT(TablesOf(tables_, snapshots),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("'item'")));
}

TEST_F(TableTransferTest, OtherSlots_AreNamed) {
  CheckpointManifest manifest;
  std::vector<TableDef> tables = {MakeTable("user", 3, "sgd")};
  Attr* const rate = tables[0].mutable_optimizer()->add_attr();
  rate->set_name("learning_rate");
  rate->set_f(1);
  *manifest.add_tables() = MakeSavedTable(tables[0], 1, {});
  EXPECT_THAT(CheckTableSlots(manifest, tables), IsOk());
  manifest.mutable_tables(0)->add_slots("m");
  EXPECT_THAT(CheckTableSlots(manifest, tables),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("table 'user'"), HasSubstr("[]"),
                             HasSubstr("[m]"))));
}

}  // namespace
}  // namespace muster
