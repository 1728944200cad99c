// Safetensors files of what checkpoints have.
#ifndef WORKER_CTL_EXPORT_FILE_H_
#define WORKER_CTL_EXPORT_FILE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/work_progress.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/safetensors_writer.h"
#include "proto/checkpoint.pb.h"
#include "worker/ctl/verb.h"

namespace muster {

// Writes bytes of a file's tensors, each by its name, and shows them.
class ExportFile {
 public:
  // Makes a new file of these tensors, has `fill` append all their bytes and
  // finishes it; what cannot be finished is removed. Errors: `fill`'s; the file
  // system's; InvalidArgument if there is such a file, or no such folder.
  static absl::Status Write(
      const VerbCall& call, const std::string& path,
      const std::vector<SafetensorsEntry>& tensors,
      const std::function<absl::Status(ExportFile*)>& fill);

  absl::Status AppendTo(absl::string_view tensor, absl::string_view data);

  // Appends the rows of a table of the manifest: PREFIXids and PREFIXvalues.
  absl::Status AppendRows(const CheckpointReader& reader, int table,
                          const std::string& prefix);

 private:
  ExportFile(SafetensorsWriter* writer, WorkProgress* progress)
      : writer_(writer), progress_(progress) {}

  SafetensorsWriter* const writer_;
  WorkProgress* const progress_;
};

// The tensors of AppendRows.
std::vector<SafetensorsEntry> RowTensors(const SavedTable& table,
                                         const std::string& prefix);

}  // namespace muster

#endif  // WORKER_CTL_EXPORT_FILE_H_
