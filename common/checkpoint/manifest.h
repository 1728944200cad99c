#ifndef COMMON_CHECKPOINT_MANIFEST_H_
#define COMMON_CHECKPOINT_MANIFEST_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/checkpoint.pb.h"
#include "proto/table.pb.h"
#include "proto/tensor.pb.h"
#include "proto/training.pb.h"

namespace muster {

// Raised when an old reader would misread or wrongly refuse a checkpoint.
//   1: the first one
//   2: the times, and the last line: a CRC of all bytes of the text before it
//   3: positions in the data are messages; before, counts of steps
//   4: the files of the data, which the CRC of an older reader would miss
//   5: the schema of the data, in place of the files alone
//   6: what evaluations have found
//   7: a ledger of the rows, in place of workers' positions
//   8: tables
inline constexpr int kCheckpointFormatVersion = 8;
inline constexpr int kFirstFormatWithPositions = 3;
inline constexpr int kFirstFormatWithSchema = 5;
inline constexpr int kFirstFormatWithEvaluations = 6;
inline constexpr int kFirstFormatWithLedger = 7;

// The smallest version that says all that the manifest holds, so that programs
// of then read it, too.
int FormatVersionOf(const CheckpointManifest& manifest);

// The text of manifest.textproto, with manifest_crc32c set and format_version:
// FormatVersionOf's. (Other versions are for tests of the reader.)
absl::StatusOr<std::string> FormatManifest(CheckpointManifest manifest);
absl::StatusOr<std::string> FormatManifest(CheckpointManifest manifest,
                                           int format_version);

// Parses and checks it; older versions, too. Errors: FailedPrecondition for a
// newer format version, whatever else it holds (do not fall back: update
// Muster); DataLoss if it is no manifest, a byte of it was changed, or its
// ledger is none (CheckLedger).
absl::StatusOr<CheckpointManifest> ParseManifest(absl::string_view text);

// May a model with these parameters, this optimizer and these tables go on from
// the checkpoint? Settings of optimizers and tables, and their order, may
// differ. Errors: FailedPrecondition naming the first parameter or table that
// differs with the shape or rule that was wanted and the one that was found, or
// the optimizers. The caller exits 3.
absl::Status CheckCompatible(const CheckpointManifest& manifest,
                             absl::Span<const TensorDef> parameters,
                             const OptimizerSpec& optimizer,
                             absl::Span<const TableDef> tables = {});

}  // namespace muster

#endif  // COMMON_CHECKPOINT_MANIFEST_H_
