#include "worker/model/plan_table.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

using Row = std::array<std::string, 5>;

// By what it takes: a primitive does not say of which kind it is. `backward`:
// after the loss, where reorders and sums are of gradients.
std::string PassOf(const Primitive& primitive, bool backward) {
  if (primitive.takes(Operand::kLabels)) return "loss";
  if (primitive.takes(Operand::kLoss)) return "penalty";
  const bool data = primitive.takes(Operand::kDiffSrc);
  const bool weights = primitive.takes(Operand::kDiffWeights);
  if (data && weights) return "backward";
  if (data) return "backward data";
  if (weights) return "backward weights";
  return backward ? "backward" : "forward";
}

int64_t MemoryBytes(const Primitive& primitive) {
  int64_t bytes = 0;
  for (const Operand operand : {Operand::kWorkspace, Operand::kScratch}) {
    for (const MemoryLayout& layout : primitive.layouts(operand)) {
      bytes += layout.size_bytes;
    }
  }
  return bytes;
}

// The device, or the host, in whose memory a buffer is.
std::string PlaceName(const ExecutionPlan& plan, const PlanBuffer& buffer,
                      absl::Span<const std::string> devices) {
  const bool is_host =
      (plan.has_host_arena && buffer.device == plan.num_devices) ||
      (buffer.space != BufferSpace::kArena && !plan.has_own_memory.empty());
  return is_host ? "host" : devices[buffer.device];
}

// The row of what copies a buffer from or to another device.
Row TransferRow(const ExecutionPlan& plan, const Instruction& transfer,
                bool backward, absl::Span<const std::string> devices) {
  Row row = {transfer.name, devices[transfer.device],
             backward ? "backward" : "forward", "", "0"};
  for (const BoundOperand& bound : transfer.operands) {
    const PlanBuffer& buffer = plan.buffers[bound.buffer];
    const bool is_src = bound.operand == Operand::kSrc;
    const std::string place = PlaceName(plan, buffer, devices);
    if (row[3].empty() || place != row[1]) {
      row[3] = absl::StrCat(is_src ? "from " : "to ", place);
    }
    if (!is_src) row[4] = absl::StrCat(buffer.size_bytes);
  }
  return row;
}

std::string Line(const Row& row, const std::array<size_t, 5>& widths) {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string gap(widths[i] - row[i].size(), ' ');
    const bool is_number = i + 1 == row.size();
    absl::StrAppend(&line, i == 0 ? "" : "  ", is_number ? gap : row[i],
                    is_number ? row[i] : gap);
  }
  return absl::StrCat(line, "\n");
}

}  // namespace

std::string PlanTable(const ExecutionPlan& plan,
                      absl::Span<const std::string> devices) {
  std::vector<Row> rows = {
      {"layer", "device", "pass", "primitive", "memory bytes"}};
  bool backward = false;
  for (const Instruction& instruction : plan.instructions) {
    if (instruction.is_transfer()) {
      rows.push_back(TransferRow(plan, instruction, backward, devices));
      continue;
    }
    const Primitive& primitive = *instruction.primitive;
    const std::string description = primitive.description();
    rows.push_back({instruction.name, devices[instruction.device],
                    PassOf(primitive, backward),
                    description.empty() ? "-" : description,
                    absl::StrCat(MemoryBytes(primitive))});
    backward |= primitive.takes(Operand::kLabels);
  }
  std::array<size_t, 5> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string table;
  for (const Row& row : rows) absl::StrAppend(&table, Line(row, widths));
  return table;
}

}  // namespace muster
