#ifndef COMMON_CONFIG_COMMAND_LINE_H_
#define COMMON_CONFIG_COMMAND_LINE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace muster {

// Flags that `--help` shows under one title.
struct FlagGroup {
  std::string title;
  std::vector<std::string> flags;
};

struct CommandLineOptions {
  // "worker".
  std::string program;
  // The program's purpose, and an example; the first lines of `--help`.
  std::string summary;
  // Printed by `--version`.
  std::string version;
  // All flags that the program takes. An ABSL_FLAG in no group is unknown to
  // it.
  std::vector<FlagGroup> groups;
  // Flags that may be given several times. Their values are collected in
  // CommandLine::repeated; the ABSL_FLAG itself keeps its default.
  std::vector<std::string> repeated_flags;
  // Flags that name files or folders of this machine: CheckLocalPath.
  std::vector<std::string> path_flags;
  // Durations that may be zero; all others must be more.
  std::vector<std::string> flags_from_zero;
};

// The wish of a command line.
struct CommandLine {
  // Print `out` to stdout and `error` to stderr and exit with this code:
  // 0 after --help or --version, 2 after a mistake. Else go on.
  std::optional<int> exit_code;
  std::string out;
  std::string error;
  // By flag name, in the order given.
  std::map<std::string, std::vector<std::string>> repeated;
};

// Sets the program's ABSL_FLAGs from `args` (without the program's name).
// Understands --name=value, --name value, --bool, --nobool, one dash for two,
// and --flagfile=FILE (one argument a line; lines starting with # are
// comments). A duration may be a plain number: of seconds. Mistakes: an unknown
// flag (the nearest is offered), a bad or missing value (says what is wanted),
// an argument that is no flag, a flagfile that cannot be read. absl's own
// parser exits with 1 in all these cases and after --help, and a script could
// not tell them apart. Not thread-safe; call it once, first in main.
CommandLine ParseCommandLine(absl::Span<const std::string> args,
                             const CommandLineOptions& options);

}  // namespace muster

#endif  // COMMON_CONFIG_COMMAND_LINE_H_
