// A save that is interrupted at each of its steps, and its files: kill -9 (T6),
// power cuts (T7), a full disk (T8), an fsync that fails (T9).
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/checkpoint/train_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/checkpoint/checkpoint_fixture.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kDir[] = "train";

// A life of a train_dir with every act of the protocol in it: the first save,
// another step, the same step again, and one that makes others go.
struct Save {
  int64_t step;
  int64_t version;  // of the bytes; rises with each save
};
constexpr Save kSaves[] = {{1, 1}, {2, 2}, {2, 3}, {5, 4}, {8, 5}};
constexpr Retention kRetention = {2, 0};

// A file system that hands everything on. `Before` is asked before each call
// that changes something; an error is that call's. An fsync that `Skips` names
// is not done.
class WatchedFileSystem : public FileSystem {
 public:
  explicit WatchedFileSystem(FileSystem* fs) : fs_(fs) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(
      const std::string& path) override {
    RETURN_IF_ERROR(Before("create"));
    ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, fs_->CreateFile(path));
    return std::make_unique<File>(this, std::move(file), path);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(
      const std::string& path) override {
    return fs_->OpenFile(path);
  }
  absl::Status CreateFolder(const std::string& path) override {
    RETURN_IF_ERROR(Before("create folder"));
    return fs_->CreateFolder(path);
  }
  absl::StatusOr<std::vector<std::string>> List(
      const std::string& path) override {
    return fs_->List(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(Before("rename"));
    return fs_->Rename(from, to);
  }
  absl::Status SyncFolder(const std::string& path) override {
    RETURN_IF_ERROR(Before("fsync folder"));
    return Skips(path) ? absl::OkStatus() : fs_->SyncFolder(path);
  }
  absl::Status Remove(const std::string& path) override {
    RETURN_IF_ERROR(Before("remove"));
    return fs_->Remove(path);
  }

 protected:
  virtual absl::Status Before(absl::string_view) { return absl::OkStatus(); }
  virtual bool Skips(const std::string&) { return false; }
  // How much of so many bytes is written before `Before`.
  virtual size_t Torn(size_t) { return 0; }

  FileSystem* const fs_;

 private:
  class File : public WritableFile {
   public:
    File(WatchedFileSystem* watch, std::unique_ptr<WritableFile> file,
         std::string path)
        : watch_(watch), file_(std::move(file)), path_(std::move(path)) {}
    absl::Status Append(absl::string_view data) override {
      const size_t torn = watch_->Torn(data.size());
      if (torn > 0) RETURN_IF_ERROR(file_->Append(data.substr(0, torn)));
      RETURN_IF_ERROR(watch_->Before("append"));
      return file_->Append(data);
    }
    absl::Status WriteAt(int64_t offset, absl::string_view data) override {
      const size_t torn = watch_->Torn(data.size());
      if (torn > 0) {
        RETURN_IF_ERROR(file_->WriteAt(offset, data.substr(0, torn)));
      }
      RETURN_IF_ERROR(watch_->Before("write"));
      return file_->WriteAt(offset, data);
    }
    absl::Status Sync() override {
      RETURN_IF_ERROR(watch_->Before("fsync"));
      return watch_->Skips(path_) ? absl::OkStatus() : file_->Sync();
    }

   private:
    WatchedFileSystem* const watch_;
    const std::unique_ptr<WritableFile> file_;
    const std::string path_;
  };
};

// ---- T6 ------------------------------------------------------------------

// How much of the data of an append is there when it is killed.
enum class Tear { kNone, kHalf, kAllButOneByte };

// Ends this process by SIGKILL in place of its `call`-th change.
class DeadlyFileSystem : public WatchedFileSystem {
 public:
  DeadlyFileSystem(FileSystem* fs, int call, Tear tear = Tear::kNone)
      : WatchedFileSystem(fs), left_(call), tear_(tear) {}
  // Changes so far, of those that were allowed.
  int left() const { return left_; }

 protected:
  absl::Status Before(absl::string_view) override {
    if (--left_ == 0) raise(SIGKILL);
    return absl::OkStatus();
  }
  size_t Torn(size_t size) override {
    if (left_ != 1 || tear_ == Tear::kNone) return 0;
    return tear_ == Tear::kHalf ? size / 2 : size - std::min<size_t>(size, 1);
  }

 private:
  int left_;
  const Tear tear_;
};

// In memory if possible: hundreds of saves, and no fsync matters to a kill.
std::string FastFolder() {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ::testing::TempDir();
}

class KilledSaveTest : public ::testing::Test {
 protected:
  KilledSaveTest()
      : dir_(absl::StrCat(FastFolder(), "/killed_save_", getpid())) {
    EXPECT_THAT(fs_.CreateFolder(dir_), IsOk());
  }
  ~KilledSaveTest() override {
    Empty();
    EXPECT_THAT(fs_.Remove(dir_), IsOk());
  }

  void Empty() {
    const auto names = fs_.List(dir_);
    ASSERT_THAT(names, IsOk());
    for (const std::string& name : *names) {
      EXPECT_THAT(fs_.Remove(absl::StrCat(dir_, "/", name)), IsOk());
    }
  }
  // All saves, in a process of their own, which is killed at the `call`-th
  // change. Returns how many of them were reported before.
  size_t SaveAndKill(int call, Tear tear) {
    int reports[2];
    EXPECT_EQ(pipe(reports), 0);
    const pid_t child = fork();
    if (child == 0) {
      DeadlyFileSystem deadly(&fs_, call, tear);
      for (const Save& save : kSaves) {
        if (!SaveSmall(&deadly, dir_, save.step, kRetention, save.version)
                 .ok() ||
            write(reports[1], "!", 1) != 1) {
          _exit(1);
        }
      }
      _exit(0);
    }
    close(reports[1]);
    size_t reported = 0;
    for (char byte; read(reports[0], &byte, 1) == 1;) ++reported;
    close(reports[0]);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "call " << call;
    return reported;
  }
  // The changes of all saves, and of those before the last one.
  std::pair<int, int> CountCalls() {
    constexpr int kNever = 1 << 30;
    DeadlyFileSystem counting(&fs_, kNever);
    int before = 0;
    for (const Save& save : kSaves) {
      before = kNever - counting.left();
      EXPECT_THAT(
          SaveSmall(&counting, dir_, save.step, kRetention, save.version),
          IsOk());
    }
    Empty();
    return {kNever - counting.left(), before};
  }

  PosixFileSystem fs_;
  const std::string dir_;
};

// Is it one of these saves, whole?
bool IsOneOf(const CheckpointReader& reader, const Save* first,
             const Save* last) {
  for (const Save* save = first; save != last; ++save) {
    if (IsExample(reader, save->step, save->version)) return true;
  }
  return false;
}

// Each call three times: with nothing, half and nearly all of what it writes.
class KilledSaveTearTest : public KilledSaveTest,
                           public ::testing::WithParamInterface<Tear> {};

TEST_P(KilledSaveTearTest, AnyStepOfTheProtocolLeavesAWholeCheckpoint) {
  const auto [calls, before_last] = CountCalls();
  // Every act of the protocol is in it: folder, files, data, fsyncs, renames,
  // removals.
  ASSERT_GT(calls - before_last, 10);
  for (int call = 1; call <= calls; ++call) {
    SCOPED_TRACE(absl::StrCat("killed at call ", call, " of ", calls));
    const size_t reported = SaveAndKill(call, GetParam());
    // As a restarted chief does.
    ASSERT_THAT(CleanTrainDir(&fs_, dir_), IsOk());
    EXPECT_THAT(*fs_.List(dir_), Each(StartsWith("ckpt-")));
    const auto newest = CheckpointReader::OpenNewest(&fs_, dir_);
    if (reported == 0 && absl::IsNotFound(newest.status())) {
      Empty();
      continue;  // The first one was never there.
    }
    ASSERT_THAT(newest, IsOk());
    EXPECT_THAT(newest->warnings, IsEmpty());
    // The last one reported, or the one after it.
    const Save* const first = kSaves + (reported == 0 ? 0 : reported - 1);
    EXPECT_TRUE(
        IsOneOf(*newest->reader, first, std::min(first + 2, std::end(kSaves))));
    // The next save works, and cleans up by itself.
    ASSERT_THAT(SaveExample(&fs_, dir_, 100), IsOk());
    EXPECT_THAT(*fs_.List(dir_), Each(StartsWith("ckpt-")));
    Empty();
  }
}

INSTANTIATE_TEST_SUITE_P(Tears, KilledSaveTearTest,
                         ::testing::Values(Tear::kNone, Tear::kHalf,
                                           Tear::kAllButOneByte));

// ---- T7 ------------------------------------------------------------------

// A disk after a power cut: it holds nothing that was not synced, and
// some of it in as many ways as there are seeds.
constexpr uint64_t kPowerSeeds = 5;

// A disk on which the fsyncs of paths that end so are left out: the bugs that
// the test has to find.
class ForgetfulFileSystem : public WatchedFileSystem {
 public:
  ForgetfulFileSystem(FileSystem* fs, std::string end)
      : WatchedFileSystem(fs), end_(std::move(end)) {}

 protected:
  bool Skips(const std::string& path) override {
    // Temporary folders are "...ckpt-<12 digits>".
    return !end_.empty() &&
           (absl::EndsWith(path, end_) ||
            (end_ == "folder" && absl::ascii_isdigit(path.back())));
  }

 private:
  const std::string end_;
};

struct PowerCuts {
  int points = 0;
  // One line for each that lost what had been reported.
  std::vector<std::string> losses;
};

// After the saves were cut at some point and `reported` of them had succeeded:
// "" or what is wrong.
std::string FindLoss(FakeFileSystem* fs, size_t reported) {
  if (!CleanTrainDir(fs, kDir).ok()) return "cannot be cleaned";
  const auto newest = CheckpointReader::OpenNewest(fs, kDir);
  if (!newest.ok()) {
    return reported == 0 && absl::IsNotFound(newest.status())
               ? ""
               : std::string(newest.status().message());
  }
  const Save* const first = kSaves + (reported == 0 ? 0 : reported - 1);
  const Save* const last = std::min(first + 2, std::end(kSaves));
  if (IsOneOf(*newest->reader, first, last)) return "";
  return absl::StrCat("found step ", newest->reader->manifest().global_step());
}

// Cuts it at each call of the saves, with each seed. `forgets`: see
// ForgetfulFileSystem.
PowerCuts CutPowerEverywhere(const std::string& forgets) {
  PowerCuts cuts;
  for (int call = 1;; ++call) {
    // Seed 0: all that was not synced is gone.
    for (uint64_t seed = 0; seed <= kPowerSeeds; ++seed) {
      FakeFileSystem fake(kDir);
      ForgetfulFileSystem fs(&fake, forgets);
      fake.FailFrom(call, absl::UnavailableError("no power"));
      size_t reported = 0;
      for (const Save& save : kSaves) {
        if (!SaveSmall(&fs, kDir, save.step, kRetention, save.version).ok()) {
          break;
        }
        ++reported;
      }
      const bool was_cut = fake.calls() >= call;
      seed == 0 ? fake.CutPower()
                : fake.CutPower(static_cast<uint64_t>(call) * 1000 + seed);
      ++cuts.points;
      const std::string loss = FindLoss(&fake, reported);
      if (!loss.empty()) {
        cuts.losses.push_back(absl::StrCat("call ", call, " seed ", seed, ", ",
                                           reported, " reported: ", loss));
      }
      // Past the last call: the power went after all was done.
      if (!was_cut && seed == kPowerSeeds) return cuts;
    }
  }
}

TEST(PowerCutTest, LeavesTheReportedCheckpointOrTheOneBefore) {
  const PowerCuts cuts = CutPowerEverywhere("");
  EXPECT_GE(cuts.points, 500);
  EXPECT_THAT(cuts.losses, IsEmpty());
  RecordProperty("points", cuts.points);
}

TEST(PowerCutTest, FindsAWriterThatLeavesOutAnyOneFsync) {
  for (const std::string forgets :
       {kDir, "folder", kParametersFile, kSlotsFile, kManifestFile}) {
    EXPECT_GT(CutPowerEverywhere(forgets).losses.size(), 3u) << forgets;
  }
}

// ---- T8 and T9 -----------------------------------------------------------

class FailedSaveTest : public ::testing::Test {
 protected:
  FailedSaveTest() {
    EXPECT_THAT(SaveSmall(&fs_, kDir, 1, Retention(), 1), IsOk());
    const int before = fs_.calls();
    const size_t logged = fs_.log().size();
    EXPECT_THAT(SaveSmall(&fs_, kDir, 2, Retention(), 2), IsOk());
    calls_ = fs_.calls() - before;
    for (int i = 0; i < calls_; ++i) {
      if (absl::StartsWith(fs_.log()[logged + static_cast<size_t>(i)],
                           "fsync")) {
        syncs_.push_back(i + 1);
      }
    }
  }
  // The step of the newest whole checkpoint; its bytes are checked.
  int64_t NewestStep() {
    const auto newest = CheckpointReader::OpenNewest(&fs_, kDir);
    EXPECT_THAT(newest, IsOk());
    if (!newest.ok()) return -1;
    const int64_t step = newest->reader->manifest().global_step();
    EXPECT_TRUE(IsExample(*newest->reader, step));
    return step;
  }

  FakeFileSystem fs_{kDir};
  // The calls of one save, and which of them are fsyncs.
  int calls_ = 0;
  std::vector<int> syncs_;
};

TEST_F(FailedSaveTest, AFullDiskLeavesTheOldOneAndNothingElse) {
  for (int call = 1; call <= calls_; ++call) {
    SCOPED_TRACE(call);
    const int64_t step = 2 + call;
    const int64_t old_step = NewestStep();
    fs_.FailAt(call, absl::ResourceExhaustedError("No space left on device"));
    EXPECT_THAT(SaveSmall(&fs_, kDir, step, Retention(), step),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         HasSubstr("No space left on device")));
    EXPECT_THAT(*fs_.List(kDir), Each(StartsWith("ckpt-")));
    EXPECT_EQ(NewestStep(), old_step);
    // There is room again.
    EXPECT_THAT(SaveSmall(&fs_, kDir, step, Retention(), step), IsOk());
    EXPECT_EQ(NewestStep(), step);
  }
}

// Every fsync of a save fails with EIO once, and on up to four tries in a row:
// the checkpoint is given up whole, no file and no folder is synced again that
// was not written again, and the next try works.
TEST_F(FailedSaveTest, AFailedFsyncIsNeverRepeatedButTheCheckpointWrittenAnew) {
  ASSERT_EQ(syncs_.size(), 5u);  // Two of tensors, manifest, two folders.
  int64_t step = 2;
  for (const int sync : syncs_) {
    SCOPED_TRACE(sync);
    ++step;
    const int64_t old_step = NewestStep();
    for (int attempt = 1; attempt <= 4; ++attempt) {
      fs_.FailAt(sync, absl::UnknownError("Input/output error"));
      const size_t logged = fs_.log().size();
      EXPECT_THAT(SaveSmall(&fs_, kDir, step, Retention(), step),
                  StatusIs(absl::StatusCode::kUnknown,
                           HasSubstr("Input/output error")));
      const std::vector<std::string> log = fs_.log();
      // After the one that failed only renames and removals.
      for (size_t i = logged + static_cast<size_t>(sync); i < log.size(); ++i) {
        EXPECT_FALSE(absl::StartsWith(log[i], "fsync")) << log[i];
      }
      EXPECT_THAT(*fs_.List(kDir), Each(StartsWith("ckpt-")));
      EXPECT_EQ(NewestStep(), old_step);
    }
    EXPECT_THAT(SaveSmall(&fs_, kDir, step, Retention(), step), IsOk());
    EXPECT_EQ(NewestStep(), step);
  }
}

TEST_F(FailedSaveTest, AFailedFolderFsyncKeepsTheOneThatWasToBeReplaced) {
  // Two renames instead of one.
  fs_.FailAt(syncs_.back() + 1, absl::UnknownError("Input/output error"));
  EXPECT_FALSE(SaveSmall(&fs_, kDir, 2, Retention(), /*version=*/9).ok());
  EXPECT_THAT(*fs_.List(kDir),
              ::testing::ElementsAre(CheckpointName(1), CheckpointName(2)));
  EXPECT_EQ(NewestStep(), 2);
}

}  // namespace
}  // namespace muster
