#include "common/base/logging.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "google/protobuf/stubs/logging.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/sinks/stdout_sinks.h"

namespace muster {
namespace {

// A longer message is a mistake, or an attack on the disk.
constexpr size_t kMaxMessageLength = 16 << 10;

// The pattern's "%*": the message, escaped.
class EscapedMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& time,
              spdlog::memory_buf_t& line) override {
    static_cast<void>(time);
    const std::string text = EscapeForLog(
        absl::string_view(message.payload.data(), message.payload.size()),
        kMaxMessageLength);
    line.append(text.data(), text.data() + text.size());
  }

  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<EscapedMessage>();
  }
};

absl::StatusOr<spdlog::level::level_enum> ParseLevel(const std::string& name) {
  static const auto& kLevels = *new std::vector<std::string>{
      "trace", "debug", "info", "warning", "error", "critical", "off"};
  const auto it = std::find(kLevels.begin(), kLevels.end(), name);
  if (it == kLevels.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--log_level: ", UnknownNameMessage("log level", name, kLevels)));
  }
  return static_cast<spdlog::level::level_enum>(it - kLevels.begin());
}

// Logs the library's own lines, mostly about bytes from outside.
void LogProtobuf(google::protobuf::LogLevel, const char*, int,
                 const std::string& message) {
  LogLine(Reporter::kWarning, absl::StrCat("protobuf: ", message));
}

spdlog::level::level_enum LevelOf(Reporter::Level level) {
  if (level == Reporter::kInfo) return spdlog::level::info;
  return level == Reporter::kWarning ? spdlog::level::warn : spdlog::level::err;
}

}  // namespace

absl::StatusOr<std::shared_ptr<spdlog::logger>> MakeLogger(
    const LogOptions& options, spdlog::sink_ptr sink) {
  ASSIGN_OR_RETURN(const spdlog::level::level_enum level,
                   ParseLevel(options.level));
  const std::string task =
      options.task_name.empty()
          ? ""
          : absl::StrCat(absl::StrReplaceAll(EscapeForLog(options.task_name),
                                             {{"%", "%%"}}),
                         " ");
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<EscapedMessage>('*').set_pattern(
      absl::StrCat("%Y-%m-%d %H:%M:%S.%e%z %^%L%$ ", task, "%*"));
  auto logger = std::make_shared<spdlog::logger>("muster", std::move(sink));
  logger->set_formatter(std::move(formatter));
  logger->set_level(level);
  // A process that is killed must not keep its last words.
  logger->flush_on(spdlog::level::trace);
  return logger;
}

absl::Status SetUpLogging(const LogOptions& options) {
  spdlog::sink_ptr sink;
  if (isatty(STDERR_FILENO) == 1 && !options.no_color) {
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
  const absl::Status known = ParseLevel(options.level).status();
  LogOptions usable = options;
  // A wrong level is said in our own form, too.
  if (!known.ok()) usable.level = LogOptions().level;
  ASSIGN_OR_RETURN(std::shared_ptr<spdlog::logger> logger,
                   MakeLogger(usable, std::move(sink)));
  spdlog::set_default_logger(std::move(logger));
  google::protobuf::SetLogHandler(&LogProtobuf);
  return known;
}

void LogLine(Reporter::Level level, absl::string_view line) {
  spdlog::log(LevelOf(level), "{}", std::string(line));
}

}  // namespace muster
