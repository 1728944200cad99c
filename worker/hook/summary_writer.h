#ifndef WORKER_HOOK_SUMMARY_WRITER_H_
#define WORKER_HOOK_SUMMARY_WRITER_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/base/reporter.h"
#include "common/checkpoint/file_system.h"
#include "common/summary/event_file_writer.h"

namespace muster {

// Writes into `train_dir`/summaries/`writer`: each process that writes has a
// folder of its own ("chief", "evaluator"), which TensorBoard shows as a run.
// `file_system` and `clock` outlive the writer; `reporter` gets lines for the
// operator from its thread.
std::unique_ptr<EventFileWriter> MakeSummaryWriter(FileSystem* file_system,
                                                   const Clock* clock,
                                                   const std::string& train_dir,
                                                   absl::string_view writer,
                                                   Reporter reporter);

}  // namespace muster

#endif  // WORKER_HOOK_SUMMARY_WRITER_H_
