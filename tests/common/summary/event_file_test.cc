#include "common/summary/event_file.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/summary/read_events.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

constexpr char kFolder[] = "logs/chief";

std::string RecordOf(int64_t step) {
  Event event;
  event.set_step(step);
  event.mutable_summary()->add_value()->set_tag("loss");
  return EventRecord(event);
}

class EventFileTest : public testing::Test {
 protected:
  EventFileTest() : files_("logs") {}

  EventFile MakeFile() {
    EventFile::Options options;
    options.file_system = &files_;
    options.folder = kFolder;
    options.host = "host/1";
    options.process_id = 42;
    options.wall_now = [this] { return now_; };
    options.max_bytes = max_bytes_;
    return EventFile(options);
  }

  std::vector<std::string> Names() { return files_.List(kFolder).value(); }
  std::vector<Event> Events(const EventFile& file) {
    return ReadEvents(files_.Contents(file.path()));
  }

  FakeFileSystem files_;
  int64_t max_bytes_ = EventFile::Options().max_bytes;
  absl::Time now_ = absl::FromUnixSeconds(1234567890);
};

TEST_F(EventFileTest, NamesTheFileAndItsWriter) {
  EventFile file = MakeFile();
  EXPECT_EQ(file.path(), "");
  ASSERT_THAT(file.Append(RecordOf(5), 5), IsOk());
  EXPECT_EQ(file.path(),
            "logs/chief/events.out.tfevents.1234567890.host_1.42.1");
  const std::vector<Event> events = Events(file);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[0].wall_time(), 1234567890);
  EXPECT_NE(events[0].source_metadata().writer(), "");
  EXPECT_EQ(events[1].step(), 5);
}

TEST_F(EventFileTest, GoesOnInTheSameFile) {
  EventFile file = MakeFile();
  ASSERT_THAT(file.Append(RecordOf(5), 5), IsOk());
  ASSERT_THAT(file.Append(RecordOf(6) + RecordOf(7), 6), IsOk());
  EXPECT_EQ(Events(file).size(), 4u);
  EXPECT_EQ(Names().size(), 1u);
}

TEST_F(EventFileTest, StandsBehindTheFilesThatAreThere) {
  EventFile first = MakeFile();
  ASSERT_THAT(first.Append(RecordOf(5), 5), IsOk());
  now_ -= absl::Hours(1);
  EventFile second = MakeFile();
  ASSERT_THAT(second.Append(RecordOf(6), 6), IsOk());
  EXPECT_GT(second.path(), first.path());
  EXPECT_THAT(second.path(), testing::HasSubstr(".1234567891."));
}

TEST_F(EventFileTest, ForgetsWhatATornFileMayHave) {
  EventFile file = MakeFile();
  ASSERT_THAT(file.Append(RecordOf(5), 5), IsOk());
  const std::string first = file.path();
  files_.FailAt(1, absl::ResourceExhaustedError("disk full"));
  EXPECT_THAT(file.Append(RecordOf(6), 6),
              StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_THAT(file.Append(RecordOf(6), 6), IsOk());
  EXPECT_GT(file.path(), first);
  const std::vector<Event> events = Events(file);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[1].session_log().status(), SessionLog::START);
  EXPECT_EQ(events[1].step(), 6);
  EXPECT_FALSE(events[1].has_source_metadata());
  EXPECT_EQ(events[2].step(), 6);
}

TEST_F(EventFileTest, GoesOnInTheNextFileWhereOneIsFull) {
  max_bytes_ = 2 * static_cast<int64_t>(RecordOf(5).size());
  EventFile file = MakeFile();
  for (const int64_t step : {5, 6, 7}) {
    ASSERT_THAT(file.Append(RecordOf(step), step), IsOk());
  }
  ASSERT_THAT(file.Append(RecordOf(8) + RecordOf(9) + RecordOf(10), 8), IsOk());
  const std::vector<std::string> names = Names();
  ASSERT_EQ(names.size(), 3u);
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    std::vector<Event> events =
        ReadEvents(files_.Contents(absl::StrCat(kFolder, "/", name)));
    EXPECT_EQ(events[0].file_version(), "brain.Event:2");
    for (size_t i = 1; i < events.size(); ++i) {
      // No point is void, as after an error.
      EXPECT_TRUE(events[i].has_summary());
      steps.push_back(events[i].step());
    }
  }
  EXPECT_THAT(steps, testing::ElementsAre(5, 6, 7, 8, 9, 10));
}

TEST_F(EventFileTest, ANextFileThatCannotBeMadeLosesNothing) {
  max_bytes_ = 1;
  EventFile file = MakeFile();
  ASSERT_THAT(file.Append(RecordOf(5), 5), IsOk());
  files_.FailAt(1, absl::ResourceExhaustedError("disk full"));
  EXPECT_THAT(file.Append(RecordOf(6), 6),
              StatusIs(absl::StatusCode::kResourceExhausted));
  ASSERT_THAT(file.Append(RecordOf(6), 6), IsOk());
  EXPECT_EQ(Names().size(), 2u);
  EXPECT_EQ(Events(file).back().step(), 6);
}

// Calls: make the folder, make the file, append.
TEST_F(EventFileTest, LeavesNoLitterOnAFullDisk) {
  EventFile file = MakeFile();
  files_.FailAt(3, absl::ResourceExhaustedError("disk full"));
  EXPECT_THAT(file.Append(RecordOf(5), 5),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_TRUE(Names().empty());
  ASSERT_THAT(file.Append(RecordOf(5), 5), IsOk());
  EXPECT_EQ(Names().size(), 1u);
}

TEST_F(EventFileTest, SaysWhyThereIsNoFile) {
  EventFile file = MakeFile();
  files_.FailAt(1, absl::PermissionDeniedError("create folder: denied"));
  EXPECT_THAT(file.Append(RecordOf(5), 5),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       testing::HasSubstr("denied")));
}

}  // namespace
}  // namespace muster
