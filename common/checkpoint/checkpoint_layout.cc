#include "common/checkpoint/checkpoint_layout.h"

#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace muster {
namespace {

constexpr size_t kMaxNameLength = 255;
constexpr int64_t kMaxRowValues = 65536;
constexpr char kIds[] = "ids";
constexpr char kValues[] = "values";
// Those whose elements are whole rows' numbers: ids and counts.
constexpr size_t kIntegerStreams = 2;

bool IsTensorName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxNameLength &&
         absl::c_all_of(name, [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '/' ||
                  c == '-';
         });
}

absl::Status CheckSlots(absl::Span<const std::string> slots) {
  for (const std::string& slot : slots) {
    if (!IsTensorName(slot) || absl::StrContains(slot, '/') ||
        absl::c_count(slots, slot) > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("checkpoint slot '", absl::CHexEscape(slot),
                       "' has a bad name, or is given twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> CheckParameter(const TensorDef& parameter) {
  const std::string context = absl::StrCat(
      "checkpoint parameter '", absl::CHexEscape(parameter.name()), "'");
  if (!IsTensorName(parameter.name())) {
    return absl::InvalidArgumentError(absl::StrCat(
        context, ": a name has 1 to 255 of the characters [A-Za-z0-9_./-]"));
  }
  if (SizeOf(parameter.dtype()) == 0) {
    return absl::InvalidArgumentError(absl::StrCat(context, ": has no dtype"));
  }
  const absl::StatusOr<Shape> shape = Shape::Create(parameter.shape());
  if (!shape.ok()) return Annotate(shape.status(), context);
  if (shape->num_elements() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(context, ": shape ", shape->ToString(), " is empty"));
  }
  return shape;
}

// One file: its tensors, and which piece each of them is.
class FileLayout {
 public:
  void Add(const TensorDef& parameter, std::string slot, DataType dtype,
           const Shape& shape) {
    CheckpointPiece piece;
    piece.parameter = parameter;
    piece.slot = std::move(slot);
    piece.dtype = dtype;
    piece.elements = shape.num_elements();
    piece.size_bytes = piece.elements * static_cast<int64_t>(SizeOf(dtype));
    SafetensorsEntry entry;
    entry.name = PieceName(piece);
    entry.dtype = dtype;
    entry.shape = shape;
    pieces_[entry.name] = std::move(piece);
    entries_.push_back(std::move(entry));
  }

  // Returns the laid out entries, and appends their pieces.
  absl::StatusOr<std::vector<SafetensorsEntry>> Finish(
      std::vector<CheckpointPiece>* pieces) {
    ASSIGN_OR_RETURN(std::vector<SafetensorsEntry> entries,
                     LayOutSafetensors(std::move(entries_)));
    for (const SafetensorsEntry& entry : entries) {
      pieces->push_back(std::move(pieces_[entry.name]));
    }
    return entries;
  }

 private:
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, CheckpointPiece> pieces_;
};

void AddSlots(const TensorDef& parameter, const Shape& shape,
              absl::Span<const std::string> slots, FileLayout* file) {
  for (const std::string& slot : slots) {
    if (slot != kUpdateCountsSlot) {
      file->Add(parameter, slot, parameter.dtype(), shape);
    }
  }
  file->Add(parameter, kUpdateCountsSlot, INT64,
            Shape({NumBlocks(shape.num_elements())}));
}

absl::Status CheckTable(const SavedTable& table) {
  const TableDef& definition = table.definition();
  const std::string context = absl::StrCat(
      "checkpoint table '", absl::CHexEscape(definition.name()), "'");
  if (!IsTensorName(definition.name())) {
    return absl::InvalidArgumentError(absl::StrCat(
        context, ": a name has 1 to 255 of the characters [A-Za-z0-9_./-]"));
  }
  if (definition.dim() < 1 || definition.dim() > kMaxRowValues) {
    return absl::InvalidArgumentError(
        absl::StrCat(context, ": dim is ", definition.dim(), ", wanted 1 to ",
                     kMaxRowValues));
  }
  const std::vector<std::string> slots(table.slots().begin(),
                                       table.slots().end());
  return Annotate(CheckSlots(slots), context);
}

absl::StatusOr<std::vector<SafetensorsEntry>> LayOutTables(
    absl::Span<const SavedTable> tables) {
  std::vector<SafetensorsEntry> entries;
  for (const SavedTable& table : tables) {
    RETURN_IF_ERROR(CheckTable(table));
    const std::vector<std::string> streams = TableStreams(table);
    for (size_t i = 0; i < streams.size(); ++i) {
      std::vector<int64_t> dims = {table.rows()};
      if (i >= kIntegerStreams) dims.push_back(table.definition().dim());
      const absl::StatusOr<Shape> shape = Shape::Create(dims);
      if (!shape.ok()) return Annotate(shape.status(), streams[i]);
      SafetensorsEntry& entry = entries.emplace_back();
      entry.name = streams[i];
      entry.dtype = i < kIntegerStreams ? INT64 : FLOAT32;
      entry.shape = *shape;
    }
  }
  return LayOutSafetensors(std::move(entries));
}

}  // namespace

std::vector<std::string> TableStreams(const SavedTable& table) {
  std::vector<std::string> names = {kIds, kUpdateCountsSlot, kValues};
  names.insert(names.end(), table.slots().begin(), table.slots().end());
  for (std::string& name : names) {
    name = absl::StrCat(table.definition().name(), "/", name);
  }
  return names;
}

std::string PieceName(const CheckpointPiece& piece) {
  return piece.slot.empty()
             ? piece.parameter.name()
             : absl::StrCat(piece.parameter.name(), "/", piece.slot);
}

absl::StatusOr<CheckpointLayout> LayOutCheckpoint(
    absl::Span<const TensorDef> parameters, absl::Span<const std::string> slots,
    absl::Span<const SavedTable> tables) {
  RETURN_IF_ERROR(CheckSlots(slots));
  FileLayout parameters_file;
  FileLayout slots_file;
  for (const TensorDef& parameter : parameters) {
    ASSIGN_OR_RETURN(const Shape shape, CheckParameter(parameter));
    parameters_file.Add(parameter, "", parameter.dtype(), shape);
    if (parameter.kind() == TRAINABLE) {
      AddSlots(parameter, shape, slots, &slots_file);
    }
  }
  CheckpointLayout layout;
  ASSIGN_OR_RETURN(layout.parameters, parameters_file.Finish(&layout.pieces));
  ASSIGN_OR_RETURN(layout.slots, slots_file.Finish(&layout.pieces));
  ASSIGN_OR_RETURN(layout.tables, LayOutTables(tables));
  return layout;
}

}  // namespace muster
