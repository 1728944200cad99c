// musterctl's verbs: what each is, and how a command line becomes a call.
#ifndef WORKER_CTL_VERB_H_
#define WORKER_CTL_VERB_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/registry.h"
#include "common/base/work_progress.h"
#include "common/checkpoint/file_system.h"
#include "common/process/exit_code.h"

namespace muster {

// A command line that fits its verb.
struct VerbCall {
  // The arguments that are no flags.
  std::vector<std::string> arguments;
  // The values of each flag that was given, in their order.
  std::map<std::string, std::vector<std::string>> flags;
  FileSystem* file_system = nullptr;
  // Shows how far a verb is that takes long.
  ProgressOutput output;

  // The flag's last value; "" if it was not given.
  std::string Flag(const std::string& name) const;
  // All its values.
  std::vector<std::string> Repeated(const std::string& name) const;
};

struct VerbResult {
  // The text for stdout, and that for stderr; whole lines.
  std::string out;
  std::string error;
  int exit_code = kExitDone;
};

// One thing that musterctl can do. Its source file registers it under its
// words, and stands in verbs.bzl:
//
//   // In an anonymous namespace of checkpoint_ls.cc:
//   [[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
//       "checkpoint ls", {"PATH", "lists ...", {}, 1, 1, &List});
struct Verb {
  struct Flag {
    std::string name;
    std::string help;
    // It needs no value: --force is --force=true.
    bool is_switch = false;
  };

  // The arguments as the help shows them: "PATH OTHER".
  std::string arguments;
  // A sentence without its subject: "compares two checkpoints."; further lines
  // follow in the help of the verb alone.
  std::string help;
  std::vector<Flag> flags;
  size_t fewest_arguments = 0;
  size_t most_arguments = 0;
  // Fills in the result. Errors are for stderr: DataLoss, a checkpoint that is
  // not whole, ends with kExitBadCheckpoint, all others with kExitBadConfig.
  absl::Status (*run)(const VerbCall& call, VerbResult* result) = nullptr;
};

struct VerbTag {
  static constexpr char kKind[] = "verb";
};
using VerbRegistry = Registry<VerbTag, Verb>;

// Does what `args` (without the program's name) say: runs a verb, or answers
// --help and --version. A mistake is a sentence in `error`, with exit code 2.
VerbResult RunVerb(absl::Span<const std::string> args, FileSystem* file_system,
                   const ProgressOutput& output = {});

}  // namespace muster

#endif  // WORKER_CTL_VERB_H_
