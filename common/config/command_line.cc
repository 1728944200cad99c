#include "common/config/command_line.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/base/escape.h"
#include "common/base/nearest_name.h"
#include "common/base/read_file.h"
#include "common/base/status_macros.h"
#include "common/config/local_path.h"

namespace muster {
namespace {

// Exit code for a bad command line or configuration.
constexpr int kBadUsage = 2;
// A flagfile that names itself must end.
constexpr int kMaxFlagfileDepth = 8;

using Flags = std::map<std::string, absl::CommandLineFlag*>;

bool Contains(const std::vector<std::string>& names, absl::string_view name) {
  return std::count(names.begin(), names.end(), name) > 0;
}

Flags OwnFlags(const CommandLineOptions& options) {
  Flags flags;
  for (const FlagGroup& group : options.groups) {
    for (const std::string& name : group.flags) {
      absl::CommandLineFlag* flag = absl::FindCommandLineFlag(name);
      if (flag != nullptr) flags.emplace(name, flag);
    }
  }
  return flags;
}

// The kind of value that the flag takes.
std::string Wanted(const absl::CommandLineFlag& flag) {
  if (flag.IsOfType<bool>()) return "true or false";
  if (flag.IsOfType<int>() || flag.IsOfType<int64_t>()) return "a whole number";
  if (flag.IsOfType<double>() || flag.IsOfType<float>()) return "a number";
  if (flag.IsOfType<absl::Duration>()) return "a duration like 10s or 5m";
  return "text";
}

// A duration, or a number of seconds.
bool ReadDuration(absl::string_view text, absl::Duration* duration) {
  double seconds = 0;
  if (!absl::SimpleAtod(text, &seconds)) {
    return absl::ParseDuration(text, duration);
  }
  *duration = absl::Seconds(seconds);
  return std::isfinite(seconds);
}

void AppendFlagHelp(const std::string& name, const absl::CommandLineFlag& flag,
                    std::string* out) {
  const std::string value = flag.DefaultValue();
  absl::StrAppend(out, "  --", name, " (", Wanted(flag), ", default ",
                  value.empty() ? "empty" : value, ")\n");
  for (absl::string_view line : absl::StrSplit(flag.Help(), '\n')) {
    absl::StrAppend(out, "      ", line, "\n");
  }
}

std::string HelpText(const CommandLineOptions& options, const Flags& flags) {
  std::string text = absl::StrCat(options.summary, "\n");
  for (const FlagGroup& group : options.groups) {
    absl::StrAppend(&text, "\n", group.title, ":\n");
    for (const std::string& name : group.flags) {
      const auto it = flags.find(name);
      if (it != flags.end()) AppendFlagHelp(name, *it->second, &text);
    }
  }
  absl::StrAppend(&text,
                  "\nOther flags:\n"
                  "  --flagfile=FILE\n"
                  "      Reads arguments from the file, one a line.\n"
                  "  --help\n      Prints this text.\n"
                  "  --version\n      Prints the version.\n");
  return text;
}

// Reads arguments from left to right and sets flags.
class ArgumentReader {
 public:
  ArgumentReader(const CommandLineOptions& options, Flags flags,
                 CommandLine* result)
      : options_(options), flags_(std::move(flags)), result_(result) {}

  // Stops early if --help or --version was read.
  absl::Status Read(absl::Span<const std::string> args, int depth) {
    for (size_t i = 0; i < args.size(); ++i) {
      absl::string_view text = args[i];
      if (!absl::ConsumePrefix(&text, "-") || text.empty()) {
        return NotAFlag(args[i]);
      }
      absl::ConsumePrefix(&text, "-");
      const std::pair<absl::string_view, absl::string_view> halves =
          absl::StrSplit(text, absl::MaxSplits('=', 1));
      Argument argument{std::string(halves.first), std::nullopt};
      if (absl::StrContains(text, '=')) {
        argument.value = std::string(halves.second);
      }
      if (ReadQuestion(argument)) return absl::OkStatus();
      if (!argument.value.has_value() && TakesValue(argument.name) &&
          i + 1 < args.size()) {
        argument.value = args[++i];
      }
      RETURN_IF_ERROR(ReadArgument(argument, depth));
      if (result_->exit_code.has_value()) return absl::OkStatus();
    }
    return absl::OkStatus();
  }

 private:
  struct Argument {
    std::string name;
    std::optional<std::string> value;
  };

  static absl::Status NotAFlag(const std::string& text) {
    return absl::InvalidArgumentError(
        absl::StrCat("unexpected argument '", EscapeForLog(text),
                     "'; only flags (--name=value) are taken"));
  }

  // --help and --version.
  bool ReadQuestion(const Argument& argument) {
    if (argument.value.has_value()) return false;
    if (argument.name == "help") {
      result_->out = HelpText(options_, flags_);
    } else if (argument.name == "version") {
      result_->out = absl::StrCat(options_.version, "\n");
    } else {
      return false;
    }
    result_->exit_code = 0;
    return true;
  }

  bool TakesValue(const std::string& name) const {
    const auto it = flags_.find(name);
    return name == "flagfile" ||
           (it != flags_.end() && !it->second->IsOfType<bool>());
  }

  absl::Status ReadArgument(const Argument& argument, int depth) {
    if (argument.name == "flagfile") return ReadFlagfile(argument, depth);
    const auto it = flags_.find(argument.name);
    if (it == flags_.end()) return ReadNegation(argument);
    absl::CommandLineFlag* flag = it->second;
    if (!argument.value.has_value() && !flag->IsOfType<bool>()) {
      return NoValue(argument.name, Wanted(*flag));
    }
    if (Contains(options_.repeated_flags, argument.name)) {
      result_->repeated[argument.name].push_back(*argument.value);
      return absl::OkStatus();
    }
    return Set(argument.value.value_or("true"), flag);
  }

  static absl::Status NoValue(absl::string_view name,
                              absl::string_view wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--", name, " needs a value: ", wanted, ", as in --", name, "=VALUE"));
  }

  // --nobool, or an unknown flag.
  absl::Status ReadNegation(const Argument& argument) {
    absl::string_view name = argument.name;
    if (absl::ConsumePrefix(&name, "no") && !argument.value.has_value()) {
      const auto it = flags_.find(std::string(name));
      if (it != flags_.end() && it->second->IsOfType<bool>()) {
        return Set("false", it->second);
      }
    }
    std::vector<std::string> known = {"flagfile", "help", "version"};
    for (const auto& [flag_name, flag] : flags_) known.push_back(flag_name);
    const std::string nearest = NearestName(argument.name, known);
    return absl::InvalidArgumentError(absl::StrCat(
        "unknown flag --", EscapeForLog(argument.name),
        nearest.empty() ? "" : absl::StrCat("; did you mean --", nearest, "?"),
        nearest.empty() ? "; --help lists the flags" : ""));
  }

  absl::Status Set(absl::string_view value, absl::CommandLineFlag* flag) const {
    if (flag->IsOfType<absl::Duration>()) return SetDuration(value, flag);
    if (Contains(options_.path_flags, flag->Name())) {
      RETURN_IF_ERROR(CheckPaths(value, *flag));
    }
    std::string reason;
    if (flag->ParseFrom(value, &reason)) return absl::OkStatus();
    return Refuse(value, *flag, "");
  }

  static absl::Status CheckPaths(absl::string_view value,
                                 const absl::CommandLineFlag& flag) {
    const std::string name = absl::StrCat("--", flag.Name());
    if (!flag.IsOfType<std::vector<std::string>>()) {
      return CheckLocalPath(name, value);
    }
    for (absl::string_view path : absl::StrSplit(value, ',')) {
      RETURN_IF_ERROR(CheckLocalPath(name, path));
    }
    return absl::OkStatus();
  }

  absl::Status SetDuration(absl::string_view value,
                           absl::CommandLineFlag* flag) const {
    const bool from_zero = Contains(options_.flags_from_zero, flag->Name());
    const absl::string_view range = from_zero ? ", 0 or more" : ", more than 0";
    absl::Duration duration;
    if (!ReadDuration(value, &duration) || duration < absl::ZeroDuration() ||
        (duration == absl::ZeroDuration() && !from_zero)) {
      return Refuse(value, *flag, range);
    }
    std::string reason;
    if (flag->ParseFrom(absl::AbslUnparseFlag(duration), &reason)) {
      return absl::OkStatus();
    }
    return Refuse(value, *flag, range);
  }

  static absl::Status Refuse(absl::string_view value,
                             const absl::CommandLineFlag& flag,
                             absl::string_view range) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag.Name(), " must be ", Wanted(flag), range,
                     ", found '", EscapeForLog(value), "'"));
  }

  absl::Status ReadFlagfile(const Argument& argument, int depth) {
    if (!argument.value.has_value()) return NoValue("flagfile", "a path");
    if (depth >= kMaxFlagfileDepth) {
      return absl::InvalidArgumentError(
          absl::StrCat("--flagfile=", *argument.value, ": nested deeper than ",
                       kMaxFlagfileDepth, "; does it name itself?"));
    }
    RETURN_IF_ERROR(CheckLocalPath("--flagfile", *argument.value));
    const auto text = ReadFile(*argument.value);
    if (!text.ok()) return Annotate(text.status(), "--flagfile");
    std::vector<std::string> args;
    for (absl::string_view line : absl::StrSplit(*text, '\n')) {
      line = absl::StripAsciiWhitespace(line);
      if (!line.empty() && line[0] != '#') args.emplace_back(line);
    }
    return Annotate(Read(args, depth + 1), *argument.value);
  }

  const CommandLineOptions& options_;
  const Flags flags_;
  CommandLine* const result_;
};

}  // namespace

CommandLine ParseCommandLine(absl::Span<const std::string> args,
                             const CommandLineOptions& options) {
  CommandLine result;
  ArgumentReader reader(options, OwnFlags(options), &result);
  const absl::Status status = reader.Read(args, /*depth=*/0);
  if (!status.ok()) {
    result.exit_code = kBadUsage;
    result.error = absl::StrCat(options.program, ": ", status.message(), "\n");
  }
  return result;
}

}  // namespace muster
