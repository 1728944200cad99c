#ifndef COMMON_BASE_LOGGING_H_
#define COMMON_BASE_LOGGING_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/reporter.h"
#include "spdlog/sinks/sink.h"
#include "spdlog/spdlog.h"

namespace muster {

struct LogOptions {
  // "/job:worker/task:1"; stands in every line. "" leaves it out.
  std::string task_name;
  // "trace", "debug", "info", "warning", "error", "critical" or "off".
  std::string level = "info";
  // NO_COLOR is set: no colour, even on a terminal.
  bool no_color = false;
};

// Makes spdlog's default logger write to stderr, one line an event:
//   2026-01-31 12:00:00.123+01:00 I /job:worker/task:1 step=1200 loss=0.213
// and what protobuf says by itself to it. Levels are coloured if stderr is a
// terminal. Call it once, before threads start. Errors: InvalidArgument for an
// unknown level; the logger is there, at info.
absl::Status SetUpLogging(const LogOptions& options);

// The logger that SetUpLogging installs, writing to `sink`. Control characters
// of a message are escaped (common/base/escape.h): a peer's string can neither
// forge a line nor drive the terminal.
absl::StatusOr<std::shared_ptr<spdlog::logger>> MakeLogger(
    const LogOptions& options, spdlog::sink_ptr sink);

// Writes a line of a Reporter through spdlog's default logger. Thread-safe.
void LogLine(Reporter::Level level, absl::string_view line);

}  // namespace muster

#endif  // COMMON_BASE_LOGGING_H_
