#include "worker/ctl/retired_flags.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/posix_file_system.h"
#include "common/process/exit_code.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

int RunInstead(const char* flag, const std::vector<std::string>& args) {
  PosixFileSystem file_system;
  const VerbResult result =
      RunInsteadOfFlag("worker", flag, args, &file_system);
  // First the line about the flag: stdout may go to the same place.
  std::fputs(result.error.c_str(), stderr);
  std::fputs(result.out.c_str(), stdout);
  return result.exit_code;
}

}  // namespace

int InspectCheckpoint(const std::string& path, const std::string& other,
                      const std::string& file) {
  if (other.empty() && file.empty()) {
    return RunInstead("--inspect_checkpoint", {"checkpoint", "ls", path});
  }
  int differ = kExitDone;
  if (!other.empty()) {
    differ = RunInstead("--diff_with", {"checkpoint", "diff", path, other});
  }
  if (file.empty() || differ > kExitFailed) return differ;
  const int exported =
      RunInstead("--export_to", {"checkpoint", "export", path, file});
  return exported == kExitDone ? differ : exported;
}

int ListComponents(const std::vector<std::string>& gpu_flags) {
  std::vector<std::string> args = {"list"};
  args.insert(args.end(), gpu_flags.begin(), gpu_flags.end());
  return RunInstead("--list", args);
}

int PreviewPlacement(const std::string& training,
                     const std::vector<std::string>& overrides, int num_ps) {
  std::vector<std::string> args = {"placement",
                                   absl::StrCat("--training=", training)};
  for (const std::string& value : overrides) {
    args.push_back(absl::StrCat("--set=", value));
  }
  args.push_back(absl::StrCat("--num_ps=", num_ps));
  return RunInstead("--placement_dry_run", args);
}

}  // namespace muster
