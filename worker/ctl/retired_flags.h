// The flags of the worker that are musterctl's verbs now. They go with the next
// release; until then each runs its verb, prints what that says and, to stderr,
// the command that does the same. All return the exit code.
#ifndef WORKER_CTL_RETIRED_FLAGS_H_
#define WORKER_CTL_RETIRED_FLAGS_H_

#include <string>
#include <vector>

namespace muster {

// --inspect_checkpoint: `path`. --diff_with and --export_to: `other` and
// `file`, or "".
int InspectCheckpoint(const std::string& path, const std::string& other,
                      const std::string& file);

// --list, with `gpu_flags` that were given.
int ListComponents(const std::vector<std::string>& gpu_flags);

// --placement_dry_run, with --training and --set.
int PreviewPlacement(const std::string& training,
                     const std::vector<std::string>& overrides, int num_ps);

}  // namespace muster

#endif  // WORKER_CTL_RETIRED_FLAGS_H_
