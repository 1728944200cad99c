#include "worker/checkpoint/run_schema.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "common/checkpoint/manifest.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/checkpoint/schema_text.h"
#include "worker/client/call_status.h"

namespace muster {
namespace {

using ::testing::HasSubstr;

class RunSchemaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string path = ::testing::TempDir() + "/runXXXXXX";
    dir_ = mkdtemp(path.data());
  }

  static DataSchema Named(const std::string& format) {
    DataSchema schema;
    schema.set_format(format);
    return schema;
  }

  void WriteManifest(int64_t step, const std::string& text) {
    const std::string folder = dir_ + "/" + CheckpointName(step);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/manifest.textproto") << text;
  }

  // "" : without a schema.
  void WriteCheckpoint(int64_t step, const std::string& format) {
    CheckpointManifest manifest;
    manifest.set_global_step(step);
    if (!format.empty()) *manifest.mutable_schema() = Named(format);
    WriteManifest(step, *FormatManifest(manifest));
  }

  void WriteSchemaFile(const std::string& text) {
    std::ofstream(SchemaPath(dir_)) << text;
  }

  absl::StatusOr<RunSchema> Read() {
    return ReadRunSchema(&file_system_, dir_);
  }

  // The format of what was read; "": nothing; "error".
  std::string FormatRead() {
    const auto run = Read();
    if (!run.ok()) return "error";
    return run->schema == nullptr ? "" : run->schema->format();
  }

  PosixFileSystem file_system_;
  std::string dir_;
};

TEST_F(RunSchemaTest, IsThatOfTheNewestCheckpoint) {
  WriteCheckpoint(1, "older");
  WriteCheckpoint(2, "newest");
  WriteSchemaFile(FormatSchema(Named("file")));
  EXPECT_EQ(FormatRead(), "newest");
  EXPECT_TRUE(Read()->has_checkpoint);
  EXPECT_EQ(Read()->note, "");
}

TEST_F(RunSchemaTest, WithoutACheckpointItIsTheFiles) {
  EXPECT_EQ(FormatRead(), "");
  WriteSchemaFile(FormatSchema(Named("file")));
  EXPECT_EQ(FormatRead(), "file");
  EXPECT_FALSE(Read()->has_checkpoint);
}

TEST_F(RunSchemaTest, ADamagedCheckpointIsPassedOverAsByTheLoader) {
  WriteCheckpoint(1, "older");
  WriteManifest(2, "format_version: 5\n");
  EXPECT_EQ(FormatRead(), "older");
  WriteManifest(1, "");
  EXPECT_EQ(FormatRead(), "");
}

TEST_F(RunSchemaTest, ANewerCheckpointIsLeftToTheLoaderAndNotPassedOver) {
  WriteCheckpoint(1, "older");
  WriteManifest(2, *FormatManifest(CheckpointManifest(), 6));
  const auto run = Read();
  ASSERT_THAT(run, IsOk());
  EXPECT_EQ(run->schema, nullptr);
  EXPECT_TRUE(run->has_checkpoint);
}

TEST_F(RunSchemaTest, AFolderThatIsNotThereSaysNothing) {
  dir_ += "/none";
  EXPECT_EQ(FormatRead(), "");
}

TEST_F(RunSchemaTest, ARunOfAProgramDoesNotKnowItsDataAndSaysSo) {
  WriteCheckpoint(1, "program");
  WriteSchemaFile(FormatSchema(Named("program")));
  const auto run = Read();
  ASSERT_THAT(run, IsOk());
  EXPECT_EQ(run->schema, nullptr);
  EXPECT_THAT(run->note, HasSubstr("a program has trained the run"));
}

TEST_F(RunSchemaTest, ARunThatDoesNotKnowItsDataIsSaid) {
  WriteCheckpoint(1, "");
  const auto run = Read();
  ASSERT_THAT(run, IsOk());
  EXPECT_EQ(run->schema, nullptr);
  EXPECT_THAT(run->note, HasSubstr("format 4"));
  EXPECT_THAT(run->note, HasSubstr("worked out anew"));
}

TEST_F(RunSchemaTest, AFileThatIsNotAsItWasWrittenIsRefusedBesideACheckpoint) {
  WriteCheckpoint(1, "newest");
  WriteSchemaFile(FormatSchema(Named("file")).substr(0, 60));
  const auto run = Read();
  EXPECT_THAT(run, StatusIs(absl::StatusCode::kDataLoss,
                            HasSubstr(dir_ + "/schema.textproto")));
  EXPECT_TRUE(IsOfFile(run.status()));
}

}  // namespace
}  // namespace muster
