#ifndef COMMON_CHECKPOINT_CHECKPOINT_READER_H_
#define COMMON_CHECKPOINT_CHECKPOINT_READER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/work_progress.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/row_block.h"
#include "common/checkpoint/safetensors_reader.h"
#include "proto/checkpoint.pb.h"

namespace muster {

// A whole checkpoint: every file, header and CRC has been checked, and the
// order of tables' rows. The manifest and the headers are in memory, the
// tensors are not. Thread-safe.
class CheckpointReader {
 public:
  struct Newest;

  // Opens one checkpoint folder and reads all of it once, in small pieces, to
  // check it. `progress`, if there is one, shows that; nothing is kept. Errors:
  // DataLoss naming file and tensor; NotFound if a file is missing;
  // FailedPrecondition for a newer format version; the file system's.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(
      FileSystem* file_system, const std::string& path,
      WorkProgress* progress = nullptr);

  // Opens the newest whole checkpoint of a train_dir. Errors: NotFound if
  // there is none at all (or no train_dir); DataLoss naming each if there are
  // some and all are damaged; FailedPrecondition as Open: a program that is
  // too old does not quietly fall back; stopped, if the file system is.
  static absl::StatusOr<Newest> OpenNewest(FileSystem* file_system,
                                           const std::string& train_dir,
                                           WorkProgress* progress = nullptr);

  const std::string& path() const { return path_; }
  const CheckpointManifest& manifest() const { return manifest_; }
  // The file of the parameters.
  const SafetensorsReader& parameters() const { return *parameters_; }
  // That of the rows of tables; null without tables.
  const SafetensorsReader* tables() const { return tables_.get(); }
  // All tensors but those of tables: the parameters, then the slots.
  absl::Span<const CheckpointPiece> pieces() const { return layout_.pieces; }

  // Reads `length` elements of a parameter (slot "") or of one of its slots,
  // from element `offset` on: row-major, little-endian. Errors: NotFound for
  // an unknown tensor; InvalidArgument for a range outside it.
  absl::Status Read(absl::string_view parameter, absl::string_view slot,
                    int64_t offset, int64_t length, void* dst) const;

  // Calls function(rows) for all rows of a table of the manifest, in their
  // order and in blocks of at most `block_bytes` (or one row), until one fails;
  // returns that status, or the file's.
  absl::Status ForEachRowBlock(
      int table, int64_t block_bytes,
      const std::function<absl::Status(const RowBlock&)>& function) const;
  // Reads the rows from `first` on, as many as the block has.
  absl::Status ReadRows(int table, int64_t first, RowBlock* rows) const;

 private:
  CheckpointReader(std::string path, CheckpointManifest manifest,
                   CheckpointLayout layout,
                   std::unique_ptr<SafetensorsReader> parameters,
                   std::unique_ptr<SafetensorsReader> slots,
                   std::unique_ptr<SafetensorsReader> tables);

  const std::string path_;
  const CheckpointManifest manifest_;
  const CheckpointLayout layout_;
  const std::unique_ptr<SafetensorsReader> parameters_;
  const std::unique_ptr<SafetensorsReader> slots_;
  // Null without tables.
  const std::unique_ptr<SafetensorsReader> tables_;
};

struct CheckpointReader::Newest {
  std::unique_ptr<CheckpointReader> reader;
  // One for each newer checkpoint that is damaged, to be logged as warnings.
  std::vector<std::string> warnings;
};

}  // namespace muster

#endif  // COMMON_CHECKPOINT_CHECKPOINT_READER_H_
