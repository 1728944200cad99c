#include "common/summary/event_file_writer.h"

#include <memory>
#include <string>
#include <vector>

#include "common/summary/summary_value.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/summary/read_events.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/fake_file_system.h"
#include "tests/testing/reported_lines.h"

namespace muster {
namespace {

constexpr char kFolder[] = "logs/chief";
constexpr absl::Duration kRetryAfter = absl::Seconds(30);

Summary Loss(double value) {
  Summary summary;
  AddScalar("loss", value, &summary);
  return summary;
}

class EventFileWriterTest : public testing::Test {
 protected:
  EventFileWriterTest() : files_("logs") {}

  std::unique_ptr<EventFileWriter> MakeWriter(int64_t max_waiting = 1 << 20) {
    EventFileWriter::Options options;
    options.file.file_system = &files_;
    options.file.folder = kFolder;
    options.file.host = "host";
    options.file.wall_now = [] { return absl::FromUnixSeconds(1000000000); };
    options.file.max_bytes = max_file_bytes_;
    options.clock = &clock_;
    // The tests say when.
    options.flush_every = absl::Hours(1);
    options.retry_after = kRetryAfter;
    options.max_waiting_bytes = max_waiting;
    options.reporter = said_.reporter();
    return std::make_unique<EventFileWriter>(options);
  }

  std::vector<std::string> Names() { return files_.List(kFolder).value(); }
  // Those in the newest file, without the first record.
  std::vector<Event> Events() {
    const std::string path = std::string(kFolder) + "/" + Names().back();
    std::vector<Event> events = ReadEvents(files_.Contents(path));
    EXPECT_FALSE(events.empty());
    events.erase(events.begin());
    return events;
  }

  int64_t max_file_bytes_ = EventFile::Options().max_bytes;
  FakeFileSystem files_;
  FakeClock clock_;
  ReportedLines said_;
};

TEST_F(EventFileWriterTest, WritesWhatWasAdded) {
  const auto writer = MakeWriter();
  writer->AddSessionStart(1);
  writer->Add(7, Loss(0.5));
  writer->Flush();
  const std::vector<Event> events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].session_log().status(), SessionLog::START);
  EXPECT_EQ(events[0].step(), 1);
  EXPECT_EQ(events[1].step(), 7);
  EXPECT_EQ(events[1].wall_time(), 1000000000);
  EXPECT_EQ(events[1].summary().value(0).tag(), "loss");
  EXPECT_EQ(events[1].summary().value(0).tensor().float_val(0), 0.5f);
  EXPECT_TRUE(said_.lines().empty());
}

TEST_F(EventFileWriterTest, WritesTheGraphAsBytes) {
  GraphDef graph;
  graph.add_node()->set_name("conv1");
  const auto writer = MakeWriter();
  writer->AddGraph(7, graph);
  writer->Flush();
  ASSERT_EQ(Events().size(), 1u);
  const Event event = Events()[0];
  EXPECT_EQ(event.step(), 7);
  GraphDef written;
  ASSERT_TRUE(written.ParseFromString(event.graph_def()));
  EXPECT_EQ(written.node(0).name(), "conv1");
}

TEST_F(EventFileWriterTest, WritesTheRestAtTheEnd) {
  auto writer = MakeWriter();
  writer->Add(1, Loss(1));
  writer.reset();
  EXPECT_EQ(Events().size(), 1u);
}

TEST_F(EventFileWriterTest, MakesNoFileForNothing) {
  auto writer = MakeWriter();
  writer->Add(1, Summary());
  writer->Flush();
  writer.reset();
  EXPECT_EQ(files_.calls(), 0);
}

TEST_F(EventFileWriterTest, AFullDiskIsOneLineAndCostsNothing) {
  const auto writer = MakeWriter();
  writer->Add(1, Loss(1));
  files_.FailFrom(1, absl::ResourceExhaustedError("no space left"));
  writer->Flush();
  writer->Add(2, Loss(2));
  writer->Flush();
  clock_.Advance(kRetryAfter);
  writer->Flush();
  ASSERT_EQ(said_.lines().size(), 1u);
  EXPECT_THAT(said_.lines()[0],
              testing::StartsWith("E summaries are not written"));
  EXPECT_THAT(said_.lines()[0], testing::HasSubstr("no space left"));

  files_.Restart();
  clock_.Advance(kRetryAfter);
  writer->Flush();
  ASSERT_EQ(said_.lines().size(), 2u);
  EXPECT_THAT(said_.lines()[1], testing::HasSubstr("events lost: 0"));
  const std::vector<Event> events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].step(), 1);
  EXPECT_EQ(events[1].step(), 2);
}

TEST_F(EventFileWriterTest, WaitsBeforeItTriesAgain) {
  const auto writer = MakeWriter();
  writer->Add(1, Loss(1));
  files_.FailAt(1, absl::ResourceExhaustedError("no space left"));
  writer->Flush();
  const int calls = files_.calls();
  clock_.Advance(kRetryAfter - absl::Seconds(1));
  writer->Flush();
  EXPECT_EQ(files_.calls(), calls);
  clock_.Advance(absl::Seconds(1));
  writer->Flush();
  EXPECT_EQ(Events().size(), 1u);
}

TEST_F(EventFileWriterTest, GoesOnInANewFileAfterATornOne) {
  const auto writer = MakeWriter();
  writer->Add(1, Loss(1));
  writer->Flush();
  writer->Add(2, Loss(2));
  files_.FailAt(1, absl::ResourceExhaustedError("no space left"));
  writer->Flush();
  clock_.Advance(kRetryAfter);
  writer->Flush();
  EXPECT_EQ(Names().size(), 2u);
  const std::vector<Event> events = Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].session_log().status(), SessionLog::START);
  EXPECT_EQ(events[0].step(), 2);
  EXPECT_EQ(events[1].step(), 2);
}

TEST_F(EventFileWriterTest, AFullFileIsFollowedByAnother) {
  max_file_bytes_ = 1;
  const auto writer = MakeWriter();
  writer->AddSessionStart(1);
  for (int step = 1; step <= 3; ++step) {
    writer->Add(step, Loss(step));
    writer->Flush();
  }
  EXPECT_EQ(Names().size(), 3u);
  EXPECT_THAT(said_.lines(), testing::IsEmpty());
  const std::vector<Event> events = Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].step(), 3);
}

TEST_F(EventFileWriterTest, DropsAndCountsWhatDoesNotFit) {
  Event event;
  event.set_wall_time(1e9);
  event.set_step(1);
  *event.mutable_summary() = Loss(1);
  const int64_t one = static_cast<int64_t>(EventRecord(event).size());
  const auto writer = MakeWriter(2 * one);
  for (int step = 1; step <= 5; ++step) writer->Add(step, Loss(1));
  writer->Flush();
  EXPECT_EQ(Events().size(), 2u);
  ASSERT_EQ(said_.lines().size(), 1u);
  EXPECT_THAT(said_.lines()[0], testing::HasSubstr("events lost: 3"));
}

}  // namespace
}  // namespace muster
