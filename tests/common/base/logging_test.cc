#include "common/base/logging.h"

#include <memory>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "common/base/reporter.h"
#include "gmock/gmock.h"
#include "google/protobuf/stubs/logging.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

class LoggingTest : public testing::Test {
 protected:
  std::shared_ptr<spdlog::logger> Make(const LogOptions& options) {
    auto logger = MakeLogger(
        options, std::make_shared<spdlog::sinks::ostream_sink_mt>(text_));
    EXPECT_THAT(logger, IsOk());
    return *logger;
  }

  std::ostringstream text_;
};

TEST_F(LoggingTest, PutsTimeWithItsZoneLevelAndTaskInEveryLine) {
  LogOptions options;
  options.task_name = "/job:worker/task:1";
  Make(options)->info("step={} loss={:.3f}", 1200, 0.213);
  EXPECT_THAT(text_.str(),
              MatchesRegex("[0-9]+-[0-9]+-[0-9]+ [0-9]+:[0-9]+:[0-9]+\\.[0-9]+"
                           "[-+][0-9][0-9]:[0-9][0-9] "
                           "I /job:worker/task:1 step=1200 loss=0\\.213\n"));
}

TEST_F(LoggingTest, LeavesOutLinesBelowTheLevel) {
  LogOptions options;
  options.level = "warning";
  const auto logger = Make(options);
  logger->info("quiet");
  EXPECT_THAT(text_.str(), IsEmpty());
  logger->warn("loud");
  EXPECT_THAT(text_.str(), HasSubstr("W loud"));
}

TEST_F(LoggingTest, APeersStringCannotForgeALineOrDriveTheTerminal) {
  LogOptions options;
  options.task_name = "/job:%n\x1b/task:0";
  Make(options)->error("peer said {}", "x\n2026 I ok\x1b]0;t");
  EXPECT_THAT(text_.str(), HasSubstr("E /job:%n\\x1b/task:0 peer said "
                                     "x\\n2026 I ok\\x1b]0;t\n"));
}

TEST_F(LoggingTest, LinesOfAReporterHaveItsLevels) {
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(Make({}));
  const Reporter reporter(&LogLine);
  reporter.Info("saved {}");
  reporter.Warning("late");
  reporter.Error("lost");
  spdlog::set_default_logger(before);
  EXPECT_THAT(text_.str(), MatchesRegex(".* I saved \\{\\}\n"
                                        ".* W late\n"
                                        ".* E lost\n"));
}

TEST_F(LoggingTest, RefusesAnUnknownLevel) {
  LogOptions options;
  options.level = "inof";
  EXPECT_THAT(SetUpLogging(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--log_level: unknown"),
                             HasSubstr("did you mean 'info'?"))));
  // Which says so.
  EXPECT_EQ(spdlog::default_logger()->name(), "muster");
  EXPECT_EQ(spdlog::get_level(), spdlog::level::info);
}

TEST_F(LoggingTest, WhatProtobufSaysIsALineOfOurs) {
  ASSERT_THAT(SetUpLogging({}), IsOk());
  spdlog::set_default_logger(Make({}));
  GOOGLE_LOG(ERROR) << "invalid UTF-8";
  spdlog::set_default_logger(Make({}));
  EXPECT_THAT(text_.str(), MatchesRegex(".* W protobuf: invalid UTF-8\n"));
}

TEST_F(LoggingTest, SetUpReplacesTheDefaultLogger) {
  LogOptions options;
  options.level = "error";
  ASSERT_THAT(SetUpLogging(options), IsOk());
  EXPECT_EQ(spdlog::default_logger()->name(), "muster");
  EXPECT_EQ(spdlog::get_level(), spdlog::level::err);
}

}  // namespace
}  // namespace muster
