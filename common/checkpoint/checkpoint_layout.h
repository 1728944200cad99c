#ifndef COMMON_CHECKPOINT_CHECKPOINT_LAYOUT_H_
#define COMMON_CHECKPOINT_CHECKPOINT_LAYOUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/checkpoint/safetensors_header.h"
#include "proto/checkpoint.pb.h"
#include "proto/tensor.pb.h"

namespace muster {

inline constexpr char kParametersFile[] = "parameters.safetensors";
inline constexpr char kSlotsFile[] = "slots.safetensors";
// Only if the model has tables.
inline constexpr char kTablesFile[] = "tables.safetensors";
inline constexpr char kManifestFile[] = "manifest.textproto";

// The slot of every trainable parameter that counts its updates: INT64, one
// element for each block of kBlockElements.
inline constexpr char kUpdateCountsSlot[] = "t";

// One tensor of a checkpoint: a parameter, or a slot of one.
struct CheckpointPiece {
  TensorDef parameter;
  // "" is the parameter itself; "m", "t", ...
  std::string slot;
  // FLOAT32 or what the parameter is, or INT64 for "t".
  DataType dtype = DATA_TYPE_UNSPECIFIED;
  int64_t elements = 0;
  int64_t size_bytes = 0;
};

// Its name in the files: "dense/weights", "dense/weights/m".
std::string PieceName(const CheckpointPiece& piece);

// The tensors of a table's rows: "user/ids", INT64 [n]; "user/t", INT64 [n],
// each row's count of updates; "user/values", FLOAT32 [n, dim]; a slot of the
// rule, "user/m", FLOAT32 [n, dim]. In this order, that of rows in messages.
std::vector<std::string> TableStreams(const SavedTable& table);

// The contents of a checkpoint's files, and the order of their bytes.
struct CheckpointLayout {
  std::vector<SafetensorsEntry> parameters;
  std::vector<SafetensorsEntry> slots;
  std::vector<SafetensorsEntry> tables;
  // Those of the parameters file, then those of the slots file. Rows of tables
  // are none.
  std::vector<CheckpointPiece> pieces;
};

// Lays out a checkpoint of these parameters, whose trainable ones have `slots`
// ("t" is added where it is missing), and of these tables' rows. Errors:
// InvalidArgument naming a parameter, slot or table with a name, shape or dtype
// that tensor.proto or table.proto forbids, or that is given twice.
absl::StatusOr<CheckpointLayout> LayOutCheckpoint(
    absl::Span<const TensorDef> parameters, absl::Span<const std::string> slots,
    absl::Span<const SavedTable> tables = {});

}  // namespace muster

#endif  // COMMON_CHECKPOINT_CHECKPOINT_LAYOUT_H_
