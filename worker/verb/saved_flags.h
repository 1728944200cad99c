// The flags of the verbs that use a trained model.
#ifndef WORKER_VERB_SAVED_FLAGS_H_
#define WORKER_VERB_SAVED_FLAGS_H_

#include <functional>
#include <string>

#include "absl/flags/declare.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/config/command_line.h"
#include "worker/saved/saved_run.h"

namespace muster {

// The groups and paths of `verb`, with `flags` of its own in the first group.
CommandLineOptions DescribeSavedVerb(const std::string& verb,
                                     const std::vector<std::string>& flags);

// Calls `use` with what the flags say, until that is done or a signal comes.
// `add` sets the verb's own options first. Returns the exit code.
int RunSavedVerb(
    const CommandLine& command_line,
    const std::function<absl::Status(SavedRunOptions*)>& add,
    const std::function<absl::Status(const SavedRunOptions&)>& use);

}  // namespace muster

#endif  // WORKER_VERB_SAVED_FLAGS_H_
