// tables.safetensors: its bytes, and what is wrong with a damaged one.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/table_fixture.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kDir[] = "train";

template <typename T>
std::vector<T> NumbersAt(const std::string& bytes, size_t offset, size_t n) {
  std::vector<T> numbers(n);
  std::memcpy(numbers.data(), bytes.data() + offset, n * sizeof(T));
  return numbers;
}

class CheckpointTablesTest : public ::testing::Test {
 protected:
  std::string PathOf(int64_t step, const std::string& file = kTablesFile) {
    return absl::StrCat(kDir, "/", CheckpointName(step), "/", file);
  }
  absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(int64_t step) {
    return CheckpointReader::Open(
        &fs_, absl::StrCat(kDir, "/", CheckpointName(step)));
  }
  void Flip(int64_t step, size_t byte) {
    std::string contents = fs_.Contents(PathOf(step));
    contents[byte] = static_cast<char>(contents[byte] ^ 1);
    fs_.SetContents(PathOf(step), contents);
  }

  FakeFileSystem fs_{kDir};
  // Logical shards 151, 200, 373, 868 of "user".
  const ExampleTable user_ = MakeExampleTable("user", 2, {0, 1, -1, INT64_MAX});
};

// A golden layout: a reader that knows nothing but the format reads it.
TEST_F(CheckpointTablesTest, TheFile_IsLaidOutAsTheReadmeSays) {
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 7, {user_}), IsOk());
  const std::string file = fs_.Contents(PathOf(7));
  const auto length = NumbersAt<uint64_t>(file, 0, 1)[0];
  ASSERT_EQ(length % 8, 0);
  std::string json = file.substr(8, length);
  json.erase(json.find_last_not_of(' ') + 1);
  EXPECT_EQ(json,
            R"({"user/ids":{"dtype":"I64","shape":[4],"data_offsets":[0,32]},)"
            R"("user/t":{"dtype":"I64","shape":[4],"data_offsets":[32,64]},)"
            R"("user/accumulator":{"dtype":"F32","shape":[4,2],)"
            R"("data_offsets":[64,96]},)"
            R"("user/values":{"dtype":"F32","shape":[4,2],)"
            R"("data_offsets":[96,128]}})");
  const std::string data = file.substr(8 + length);
  ASSERT_EQ(data.size(), 128);
  EXPECT_THAT(NumbersAt<int64_t>(data, 0, 4), ElementsAre(INT64_MAX, -1, 0, 1));
  EXPECT_THAT(NumbersAt<int64_t>(data, 32, 4), ElementsAre(1, 1, 1, 1));
  const auto accumulators = NumbersAt<float>(data, 64, 8);
  EXPECT_EQ(accumulators[4], 1.375f) << "id 0, stream 3";
  const auto values = NumbersAt<float>(data, 96, 8);
  EXPECT_EQ(values[4], 1.25f) << "id 0, stream 2";
  EXPECT_EQ(values[7], 2.265625f) << "id 1, element 1";
}

TEST_F(CheckpointTablesTest, TheManifest_HasTablesAndFormat8) {
  const ExampleTable item = MakeExampleTable("item", 1, {5});
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 7, {user_, item}), IsOk());
  const auto reader = Open(7);
  ASSERT_THAT(reader, IsOk());
  const CheckpointManifest& manifest = (*reader)->manifest();
  EXPECT_EQ(manifest.format_version(), 8);
  ASSERT_EQ(manifest.tables_size(), 2);
  EXPECT_EQ(manifest.tables(0).definition().name(), "user");
  EXPECT_EQ(manifest.tables(0).rows(), 4);
  EXPECT_EQ(manifest.tables(1).definition().name(), "item");
}

TEST_F(CheckpointTablesTest, WithoutTables_NoFileIsWritten) {
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 7, {}), IsOk());
  EXPECT_THAT(*fs_.List(absl::StrCat(kDir, "/", CheckpointName(7))),
              ElementsAre(kManifestFile, kParametersFile, kSlotsFile));
  EXPECT_EQ((*Open(7))->manifest().format_version(), 4);
}

TEST_F(CheckpointTablesTest, Rows_AreReadBackInBlocksOfAnySize) {
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 7, {user_}), IsOk());
  const auto reader = Open(7);
  ASSERT_THAT(reader, IsOk());
  for (const int64_t block_bytes : {1, 70, 1000}) {
    std::vector<int64_t> ids;
    ASSERT_THAT((*reader)->ForEachRowBlock(
                    0, block_bytes,
                    [&](const RowBlock& rows) {
                      const std::vector<int64_t> found(rows.ids().begin(),
                                                       rows.ids().end());
                      const RowBlock wanted = MakeRows(user_.saved, found);
                      for (size_t i = 0; i < rows.num_streams(); ++i) {
                        EXPECT_EQ(rows.stream_bytes(i), wanted.stream_bytes(i));
                      }
                      ids.insert(ids.end(), found.begin(), found.end());
                      return absl::OkStatus();
                    }),
                IsOk());
    EXPECT_EQ(ids, user_.ids);
  }
}

TEST_F(CheckpointTablesTest, TablesWithoutRows_AreWhole) {
  // Many, whose streams all begin at one byte.
  std::vector<ExampleTable> tables = {user_};
  for (int i = 0; i < 30; ++i) {
    tables.push_back(MakeExampleTable(absl::StrCat("v", i), 3, {}));
  }
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 7, tables), IsOk());
  EXPECT_THAT(Open(7), IsOk());
  EXPECT_THAT(fs_.Contents(PathOf(7)), HasSubstr(R"("shape":[0,3])"));
}

TEST_F(CheckpointTablesTest, RowsThatCome_InPieces_GiveTheSameBytes) {
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 7, {user_}), IsOk());
  const auto writer = CheckpointWriter::Create(
      {&fs_, kDir, 8, Retention()}, SmallParameters(), {}, {user_.saved});
  ASSERT_THAT(writer, IsOk());
  for (const CheckpointPiece& piece : (*writer)->pieces()) {
    ASSERT_THAT((*writer)->Append(ExampleBytes(piece, 1)), IsOk());
  }
  for (const int64_t id : user_.ids) {
    ASSERT_THAT((*writer)->AppendRows(0, MakeRows(user_.saved, {id})), IsOk());
  }
  ASSERT_THAT((*writer)->Commit(ExampleManifest(8)), IsOk());
  EXPECT_EQ(fs_.Contents(PathOf(8)), fs_.Contents(PathOf(7)));
}

TEST_F(CheckpointTablesTest, RowsOutOfOrder_AreNotSaved) {
  ExampleTable wrong = user_;
  std::swap(wrong.ids[0], wrong.ids[3]);
  EXPECT_THAT(SaveTablesExample(&fs_, kDir, 7, {wrong}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("'user'")));
  EXPECT_THAT(*fs_.List(kDir), testing::IsEmpty());
}

TEST_F(CheckpointTablesTest, MoreOrFewerRowsThanDeclared_AreNotSaved) {
  ExampleTable more = user_;
  more.saved.set_rows(3);
  EXPECT_THAT(SaveTablesExample(&fs_, kDir, 7, {more}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  ExampleTable fewer = user_;
  fewer.saved.set_rows(5);
  EXPECT_THAT(SaveTablesExample(&fs_, kDir, 7, {fewer}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(*fs_.List(kDir), testing::IsEmpty());
}

TEST_F(CheckpointTablesTest, TablesThatNoFileCanHold_AreNamed) {
  const auto refuses = [this](const SavedTable& table) {
    EXPECT_THAT(CheckpointWriter::Create({&fs_, kDir, 1, {}}, {}, {}, {table}),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << table.DebugString();
  };
  refuses(MakeSavedTable(MakeTable("a b", 1), 1));
  refuses(MakeSavedTable(MakeTable("a", 0), 1));
  refuses(MakeSavedTable(MakeTable("a", 65537), 1));
  refuses(MakeSavedTable(MakeTable("a", 1), -1));
  refuses(MakeSavedTable(MakeTable("a", 8), INT64_MAX / 8));
  refuses(MakeSavedTable(MakeTable("a", 1), 1, {"values"}));
  refuses(MakeSavedTable(MakeTable("a", 1), 1, {"m", "m"}));
}

// ---- Damage ----------------------------------------------------------------

TEST_F(CheckpointTablesTest, EveryFlippedByte_IsFoundAndNamesFileAndTensor) {
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 6, {user_}), IsOk());
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 7, {user_}), IsOk());
  const std::string whole = fs_.Contents(PathOf(7));
  const char* const kTensors[] = {"user/ids", "user/t", "user/accumulator",
                                  "user/values"};
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    Flip(7, byte);
    const auto newest = CheckpointReader::OpenNewest(&fs_, kDir);
    ASSERT_THAT(newest, IsOk());
    ASSERT_EQ(newest->reader->manifest().global_step(), 6) << byte;
    const size_t data = whole.size() - 128;
    const std::string tensor = byte < data ? "" : kTensors[(byte - data) / 32];
    ASSERT_THAT(newest->warnings,
                ElementsAre(AllOf(HasSubstr(PathOf(7)), HasSubstr(tensor))));
    fs_.SetContents(PathOf(7), whole);
  }
}

TEST_F(CheckpointTablesTest, AFileThatIsCutOrGone_IsNamed) {
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 7, {user_}), IsOk());
  const std::string whole = fs_.Contents(PathOf(7));
  for (const size_t size :
       {size_t{0}, size_t{7}, size_t{60}, whole.size() - 1}) {
    fs_.SetContents(PathOf(7), whole.substr(0, size));
    EXPECT_THAT(Open(7),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr(PathOf(7))));
  }
  ASSERT_THAT(fs_.Remove(PathOf(7)), IsOk());
  EXPECT_THAT(Open(7),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(PathOf(7))));
}

// Whoever wrote it has made all CRCs fit.
TEST_F(CheckpointTablesTest, RowsOutOfOrderInTheFile_AreDamage) {
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 7, {user_}), IsOk());
  // The ids are those of another table, whose name has another hash.
  CheckpointManifest manifest = (*Open(7))->manifest();
  manifest.mutable_tables(0)->mutable_definition()->set_name("item");
  for (CheckpointTensor& tensor : *manifest.mutable_tensors()) {
    if (absl::StartsWith(tensor.name(), "user")) {
      tensor.set_name("item" + tensor.name().substr(4));
    }
  }
  fs_.SetContents(PathOf(7, kManifestFile), *FormatManifest(manifest));
  fs_.SetContents(PathOf(7), absl::StrReplaceAll(fs_.Contents(PathOf(7)),
                                                 {{"user", "item"}}));
  EXPECT_THAT(Open(7),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(PathOf(7)), HasSubstr("table 'item'"),
                             HasSubstr("wanted rows by logical shard"))));
}

TEST_F(CheckpointTablesTest, AManifestThatPromisesTooManyRows_IsDamage) {
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 7, {user_}), IsOk());
  const CheckpointManifest whole = (*Open(7))->manifest();
  for (const int64_t rows : {int64_t{-1}, int64_t{3}, int64_t{5}, INT64_MAX}) {
    CheckpointManifest manifest = whole;
    manifest.mutable_tables(0)->set_rows(rows);
    fs_.SetContents(PathOf(7, kManifestFile), *FormatManifest(manifest));
    EXPECT_THAT(Open(7), StatusIs(absl::StatusCode::kDataLoss)) << rows;
  }
}

// ---- Faults of the disk -----------------------------------------------------

TEST_F(CheckpointTablesTest, AFaultAtAnyCall_LeavesAWholeOne) {
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 6, {user_}), IsOk());
  const int before = fs_.calls();
  ASSERT_THAT(SaveTablesExample(&fs_, kDir, 7, {user_}), IsOk());
  const int calls = fs_.calls() - before;
  for (int call = 1; call <= calls; ++call) {
    FakeFileSystem files(kDir);
    ASSERT_THAT(SaveTablesExample(&files, kDir, 6, {user_}), IsOk());
    files.FailFrom(call, absl::ResourceExhaustedError("full"));
    const absl::Status saved = SaveTablesExample(&files, kDir, 7, {user_});
    files.CutPower(/*seed=*/call);
    const auto newest = CheckpointReader::OpenNewest(&files, kDir);
    ASSERT_THAT(newest, IsOk()) << call;
    if (saved.ok()) {
      EXPECT_EQ(newest->reader->manifest().global_step(), 7) << call;
    }
  }
}

TEST(CheckpointTablesOnDiskTest, ARealFile_HasTheSameBytes) {
  FakeFileSystem fake(kDir);
  PosixFileSystem real;
  const std::string dir = ::testing::TempDir() + "/checkpoint_tables_test";
  ASSERT_THAT(real.CreateFolder(dir), IsOk());
  const ExampleTable user = MakeExampleTable("user", 2, {0, 1, -1, 9, 12});
  ASSERT_THAT(SaveTablesExample(&fake, kDir, 7, {user}), IsOk());
  ASSERT_THAT(SaveTablesExample(&real, dir, 7, {user}), IsOk());
  const std::string name = CheckpointName(7) + "/" + kTablesFile;
  const auto file = real.OpenFile(dir + "/" + name);
  ASSERT_THAT(file, IsOk());
  std::string bytes(static_cast<size_t>((*file)->size_bytes()), '\0');
  ASSERT_THAT((*file)->ReadAt(0, (*file)->size_bytes(), bytes.data()), IsOk());
  EXPECT_EQ(bytes, fake.Contents(std::string(kDir) + "/" + name));
  EXPECT_THAT(real.Remove(dir + "/" + CheckpointName(7)), IsOk());
  EXPECT_THAT(real.Remove(dir), IsOk());
}

}  // namespace
}  // namespace muster
