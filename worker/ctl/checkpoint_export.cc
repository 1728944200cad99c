// musterctl checkpoint export: the parameters, and the rows of tables, as one
// safetensors file.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/safetensors_writer.h"
#include "common/tensor/shape.h"
#include "worker/ctl/checkpoint_path.h"
#include "worker/ctl/export_file.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

constexpr int64_t kPieceBytes = 1 << 20;

std::string PrefixOf(const SavedTable& table) {
  return absl::StrCat(table.definition().name(), "/");
}

absl::StatusOr<std::vector<SafetensorsEntry>> TensorsOf(
    const CheckpointReader& reader) {
  std::vector<SafetensorsEntry> tensors;
  for (const CheckpointPiece& piece : reader.pieces()) {
    if (!piece.slot.empty()) continue;
    SafetensorsEntry entry;
    entry.name = piece.parameter.name();
    entry.dtype = piece.dtype;
    ASSIGN_OR_RETURN(entry.shape, Shape::Create(piece.parameter.shape()));
    tensors.push_back(std::move(entry));
  }
  for (const SavedTable& table : reader.manifest().tables()) {
    for (SafetensorsEntry& entry : RowTensors(table, PrefixOf(table))) {
      tensors.push_back(std::move(entry));
    }
  }
  return tensors;
}

absl::Status CopyParameter(const CheckpointReader& reader,
                           const CheckpointPiece& piece, ExportFile* file) {
  const int64_t size = piece.size_bytes / piece.elements;
  const int64_t longest = kPieceBytes / size;
  std::string buffer;
  for (int64_t offset = 0; offset < piece.elements; offset += longest) {
    const int64_t count = std::min(longest, piece.elements - offset);
    buffer.resize(static_cast<size_t>(count * size));
    const std::string& name = piece.parameter.name();
    RETURN_IF_ERROR(reader.Read(name, "", offset, count, buffer.data()));
    RETURN_IF_ERROR(file->AppendTo(name, buffer));
  }
  return absl::OkStatus();
}

absl::Status CopyAll(const CheckpointReader& reader, ExportFile* file) {
  for (const CheckpointPiece& piece : reader.pieces()) {
    if (!piece.slot.empty()) continue;
    RETURN_IF_ERROR(CopyParameter(reader, piece, file));
  }
  for (int i = 0; i < reader.manifest().tables_size(); ++i) {
    RETURN_IF_ERROR(
        file->AppendRows(reader, i, PrefixOf(reader.manifest().tables(i))));
  }
  return absl::OkStatus();
}

absl::Status Export(const VerbCall& call, VerbResult* result) {
  const std::string& file = call.arguments[1];
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                   OpenNewestCheckpoint(call, call.arguments[0], &result->out));
  ASSIGN_OR_RETURN(const std::vector<SafetensorsEntry> tensors,
                   TensorsOf(*reader));
  RETURN_IF_ERROR(ExportFile::Write(
      call, file, tensors,
      [&reader](ExportFile* written) { return CopyAll(*reader, written); }));
  absl::StrAppend(&result->out, "exported the parameters of ", reader->path(),
                  " to ", file, "\n");
  return absl::OkStatus();
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "checkpoint export",
    {"PATH FILE",
     "writes a checkpoint's parameters to a new safetensors file.\n"
     "  Of each table the tensors TABLE/ids and TABLE/values. A train_dir "
     "stands "
     "for\n  its newest whole checkpoint.",
     {},
     2,
     2,
     &Export});

}  // namespace
}  // namespace muster
