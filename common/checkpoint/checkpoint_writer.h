#ifndef COMMON_CHECKPOINT_CHECKPOINT_WRITER_H_
#define COMMON_CHECKPOINT_CHECKPOINT_WRITER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/retention.h"
#include "common/checkpoint/row_block.h"
#include "common/checkpoint/safetensors_writer.h"
#include "common/checkpoint/table_order.h"
#include "proto/checkpoint.pb.h"

namespace muster {

// Writes one checkpoint, train_dir/ckpt-<step>/, which is either whole or
// invisible: README.md has the protocol and what it survives. Keeps no bytes.
// One thread at a time. A writer that is destroyed before Commit succeeds
// removes what it wrote; earlier checkpoints are never touched before the new
// one is on the disk.
//
//   ASSIGN_OR_RETURN(auto writer, CheckpointWriter::Create(...));
//   for (const CheckpointPiece& piece : writer->pieces()) {
//     RETURN_IF_ERROR(writer->Append(...));  // piece.size_bytes in all
//   }
//   ASSIGN_OR_RETURN(auto committed, writer->Commit(manifest));
class CheckpointWriter {
 public:
  struct Options {
    // Outlives the writer.
    FileSystem* file_system = nullptr;
    // Exists, and the caller holds its TrainDirLock.
    std::string train_dir;
    int64_t global_step = 0;
    // Which checkpoints of steps up to this one are left.
    Retention retention;
  };

  struct Committed {
    std::string path;
    // Faults that did not prevent the save: old checkpoints that could not be
    // removed. For the log.
    std::vector<std::string> warnings;
  };

  // Removes what a dead writer left, and starts the files. `parameters` in
  // creation order; `slots` as the update rule names them; `tables` with the
  // rows that each will have. Errors: those of LayOutCheckpoint; the file
  // system's (ResourceExhausted: the disk is full).
  static absl::StatusOr<std::unique_ptr<CheckpointWriter>> Create(
      Options options, absl::Span<const TensorDef> parameters,
      absl::Span<const std::string> slots,
      absl::Span<const SavedTable> tables = {});

  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  ~CheckpointWriter();

  // The tensors in the order in which Append wants their bytes.
  absl::Span<const CheckpointPiece> pieces() const { return layout_.pieces; }

  // Writes the next bytes: row-major, little-endian. A call may end in the
  // middle of a tensor or go beyond it. After an error only destruction makes
  // sense.
  absl::Status Append(absl::string_view data);

  // Writes the next rows of a table, by its index. Errors: besides the file
  // system's DataLoss for rows that are not in order (TableOrder), and
  // InvalidArgument for more than were declared.
  absl::Status AppendRows(int table, const RowBlock& rows);

  // Makes the checkpoint durable and visible, then removes the oldest ones, but
  // not the best one that the manifest names.
  // `manifest`: model_epoch, fingerprint, seed, examples, optimizer, workers,
  // shards, evaluations and both times are the caller's; the rest is filled in
  // here.
  // Errors: FailedPrecondition if bytes are missing or Commit was called
  // before; DataLoss if the files are not what was written; the file system's.
  absl::StatusOr<Committed> Commit(CheckpointManifest manifest);

 private:
  CheckpointWriter(Options options, absl::Span<const TensorDef> parameters,
                   absl::Span<const std::string> slots,
                   absl::Span<const SavedTable> tables,
                   CheckpointLayout layout);

  absl::Status StartFiles();
  absl::Status FinishFiles(CheckpointManifest* manifest);
  void Describe(const std::string& file, const SafetensorsWriter& writer,
                CheckpointManifest* manifest) const;
  absl::Status WriteManifest(const CheckpointManifest& manifest);
  absl::Status Publish();
  absl::Status Replace(bool replaces);
  void Withdraw(bool replaces);
  absl::StatusOr<std::vector<SavedCheckpoint>> ListSaved() const;
  absl::Status RemoveCheckpoint(int64_t global_step) const;
  std::vector<std::string> RemoveOld(std::optional<int64_t> best_step) const;
  std::string PathOf(const std::string& name) const;

  // Constant after construction.
  const Options options_;
  const std::vector<TensorDef> parameters_;
  const std::vector<std::string> slots_;
  const std::vector<SavedTable> tables_;
  const CheckpointLayout layout_;
  const std::string temporary_;

  std::unique_ptr<SafetensorsWriter> parameters_file_;
  std::unique_ptr<SafetensorsWriter> slots_file_;
  // Null without tables; else what is written of each of them.
  std::unique_ptr<SafetensorsWriter> tables_file_;
  std::vector<TableOrder> table_orders_;
  // Bytes that the parameters file still wants.
  int64_t parameter_bytes_left_ = 0;
  // The temporary folder is there.
  bool started_ = false;
};

}  // namespace muster

#endif  // COMMON_CHECKPOINT_CHECKPOINT_WRITER_H_
