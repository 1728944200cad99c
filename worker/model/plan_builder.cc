#include "worker/model/plan_builder.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/model/memory_planner.h"

namespace muster {
namespace {

Shape WithDim(const Shape& shape, int dim, int64_t size) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[dim] = size;
  // No larger than one that is a Shape.
  return *Shape::Create(dims);
}

}  // namespace

PlanTensor PlanBuilder::OfBatch(const Primitive& loss, Operand operand) {
  const bool are_labels = operand == Operand::kLabels;
  const MemoryLayout& layout = loss.layout(operand);
  (are_labels ? plan_.labels : plan_.weights) = layout;
  PlanBuffer buffer;
  buffer.space = are_labels ? BufferSpace::kLabels : BufferSpace::kWeights;
  buffer.size_bytes = layout.size_bytes;
  return {AddBuffer(buffer), layout};
}

int PlanBuilder::AddBuffer(const PlanBuffer& buffer) {
  plan_.buffers.push_back(buffer);
  plan_.buffers.back().device = device_;
  return static_cast<int>(plan_.buffers.size()) - 1;
}

PlanTensor PlanBuilder::NewTensor(const MemoryLayout& layout) {
  PlanBuffer buffer;
  buffer.size_bytes = layout.size_bytes;
  return {AddBuffer(buffer), layout};
}

PlanTensor PlanBuilder::ExternalTensor(BufferSpace space, int index,
                                       const Shape& shape) {
  const MemoryLayout layout = MemoryLayout::RowMajor(backend()->dtype(), shape);
  PlanBuffer buffer;
  buffer.space = space;
  buffer.index = index;
  buffer.size_bytes = layout.size_bytes;
  return {AddBuffer(buffer), layout};
}

PlanTensor PlanBuilder::ExternalPart(BufferSpace space, int index,
                                     const Shape& whole, const Range& range) {
  const MemoryLayout layout = MemoryLayout::RowMajor(
      backend()->dtype(),
      WithDim(whole, range.dim,
              whole.dim(range.dim) / range.parts * range.count));
  PlanBuffer buffer;
  buffer.space = space;
  buffer.index = index;
  buffer.size_bytes = layout.size_bytes;
  for (int i = 0; i < range.dim; ++i) buffer.runs *= whole.dim(i);
  const int64_t range_bytes = buffer.run_bytes() / range.count;
  buffer.offset_bytes = range_bytes * range.begin;
  buffer.stride_bytes = range_bytes * range.parts;
  return {AddBuffer(buffer), layout};
}

void PlanBuilder::EmitTransfer(const PlanTensor& src, const PlanTensor& dst) {
  EmitBound("transfer", /*primitive=*/nullptr,
            {{Operand::kSrc, 0, src.buffer}, {Operand::kDst, 0, dst.buffer}});
}

const PlanBuilder::Copy* PlanBuilder::FindCopy(
    int source, const MemoryLayout& layout) const {
  for (const Copy& copy : copies_) {
    if (copy.source == source && copy.tensor.layout == layout &&
        DeviceOf(copy.tensor) == device_) {
      return &copy;
    }
  }
  return nullptr;
}

absl::StatusOr<PlanTensor> PlanBuilder::OnDevice(const PlanTensor& tensor) {
  const int to = device_;
  const int from = DeviceOf(tensor);
  if (from == to) return tensor;
  // A format of its own can be read by the kind of backend that made it.
  const bool is_alike = backends_[from]->name() == backends_[to]->name();
  const MemoryLayout layout =
      is_alike
          ? tensor.layout
          : MemoryLayout::RowMajor(tensor.layout.dtype, tensor.layout.shape);
  UseDevice(from);
  const absl::StatusOr<PlanTensor> src = InLayout(tensor, layout);
  UseDevice(to);
  RETURN_IF_ERROR(src.status());
  if (const Copy* copy = FindCopy(src->buffer, layout)) return copy->tensor;
  const PlanTensor dst = NewTensor(layout);
  EmitTransfer(*src, dst);
  copies_.push_back({src->buffer, dst});
  return dst;
}

absl::StatusOr<PlanTensor> PlanBuilder::InLayout(const PlanTensor& source,
                                                 const MemoryLayout& layout) {
  ASSIGN_OR_RETURN(const PlanTensor tensor, OnDevice(source));
  if (tensor.layout == layout) return tensor;
  if (tensor.layout.dtype == layout.dtype && tensor.layout.is_row_major() &&
      layout.is_row_major() &&
      tensor.layout.shape.num_elements() == layout.shape.num_elements()) {
    return PlanTensor{tensor.buffer, layout};
  }
  if (const Copy* copy = FindCopy(tensor.buffer, layout)) return copy->tensor;
  ASSIGN_OR_RETURN(std::unique_ptr<Primitive> reorder,
                   CreatePrimitive(backend(), ReorderDesc{tensor.layout.shape},
                                   Pass::kForward, {tensor.layout, layout}));
  const PlanTensor result = NewTensor(layout);
  std::vector<BoundOperand> operands = {{Operand::kSrc, 0, tensor.buffer},
                                        {Operand::kDst, 0, result.buffer}};
  if (reorder->takes(Operand::kScratch)) {
    const PlanTensor scratch = NewTensor(reorder->layout(Operand::kScratch));
    operands.push_back({Operand::kScratch, 0, scratch.buffer});
  }
  EmitBound("reorder", std::move(reorder), std::move(operands));
  copies_.push_back({tensor.buffer, result});
  return result;
}

PlanTensor PlanBuilder::PartOf(int whole, const MemoryLayout& layout,
                               int index) {
  PlanBuffer buffer;
  buffer.space = plan_.buffers[whole].space;
  buffer.whole = whole;
  buffer.offset_bytes = index * layout.size_bytes;
  buffer.size_bytes = layout.size_bytes;
  return {AddBuffer(buffer), layout};
}

int PlanBuilder::WholeOf(const std::vector<PlanTensor>& parts) const {
  const int whole = plan_.buffers[parts.front().buffer].whole;
  for (size_t i = 0; i < parts.size(); ++i) {
    const PlanBuffer& part = plan_.buffers[parts[i].buffer];
    if (part.whole != whole ||
        part.offset_bytes != static_cast<int64_t>(i) * part.size_bytes) {
      return -1;
    }
  }
  return whole;
}

bool PlanBuilder::MoveInto(int whole, const std::vector<PlanTensor>& parts) {
  std::set<int> different;
  for (const PlanTensor& part : parts) {
    const PlanBuffer& buffer = plan_.buffers[part.buffer];
    different.insert(part.buffer);
    if (buffer.space != BufferSpace::kArena || buffer.whole >= 0 ||
        buffer.live_at_end || buffer.size_bytes != part.layout.size_bytes ||
        buffer.size_bytes % kBufferAlignment != 0) {
      return false;
    }
  }
  if (different.size() < parts.size()) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    PlanBuffer& part = plan_.buffers[parts[i].buffer];
    part.whole = whole;
    part.offset_bytes = static_cast<int64_t>(i) * part.size_bytes;
  }
  return true;
}

absl::StatusOr<PlanTensor> PlanBuilder::Joined(std::vector<PlanTensor> parts) {
  for (PlanTensor& part : parts) {
    ASSIGN_OR_RETURN(part, OnDevice(part));
  }
  if (parts.size() == 1) return parts.front();
  const auto count = static_cast<int64_t>(parts.size());
  std::optional<MemoryLayout> layout =
      backend()->Stacked(parts.front().layout, count);
  if (!layout) {
    for (PlanTensor& part : parts) {
      ASSIGN_OR_RETURN(part, Reshaped(part, part.layout.shape));
    }
    layout = StackRowMajor(parts.front().layout, count);
    if (!layout) return absl::InternalError("rows of a part have no layout");
  }
  if (const int whole = WholeOf(parts); whole >= 0) {
    return PlanTensor{whole, *layout};
  }
  const PlanTensor whole = NewTensor(*layout);
  if (MoveInto(whole.buffer, parts)) return whole;
  for (size_t i = 0; i < parts.size(); ++i) {
    EmitTransfer(parts[i],
                 PartOf(whole.buffer, parts[i].layout, static_cast<int>(i)));
  }
  return whole;
}

absl::StatusOr<std::vector<PlanTensor>> PlanBuilder::Divided(
    const PlanTensor& whole, int count) {
  if (count == 1) return std::vector<PlanTensor>{whole};
  const Shape& shape = whole.layout.shape;
  ASSIGN_OR_RETURN(const PlanTensor source, Reshaped(whole, shape));
  const MemoryLayout layout = MemoryLayout::RowMajor(
      source.layout.dtype, WithDim(shape, 0, shape.dim(0) / count));
  std::vector<PlanTensor> parts;
  for (int i = 0; i < count; ++i) {
    parts.push_back(PartOf(source.buffer, layout, i));
    if (layout.size_bytes % kBufferAlignment == 0) continue;
    const PlanTensor copy = NewTensor(layout);
    EmitTransfer(parts.back(), copy);
    parts.back() = copy;
  }
  return parts;
}

absl::StatusOr<PlanTensor> PlanBuilder::Reshaped(const PlanTensor& tensor,
                                                 const Shape& shape) {
  const DataType dtype = tensor.layout.dtype;
  ASSIGN_OR_RETURN(
      const PlanTensor canonical,
      InLayout(tensor, MemoryLayout::RowMajor(dtype, tensor.layout.shape)));
  return PlanTensor{canonical.buffer, MemoryLayout::RowMajor(dtype, shape)};
}

absl::Status PlanBuilder::Bind(const Primitive& primitive, const Reads& reads,
                               std::vector<BoundOperand>* operands) {
  const absl::Span<const MemoryLayout> layouts =
      primitive.layouts(reads.operand);
  if (layouts.empty()) return absl::OkStatus();
  if (layouts.size() != reads.tensors.size()) {
    return absl::InternalError(absl::StrCat(
        "the primitive takes ", layouts.size(), " ", OperandName(reads.operand),
        ", there are ", reads.tensors.size()));
  }
  for (size_t i = 0; i < layouts.size(); ++i) {
    ASSIGN_OR_RETURN(const PlanTensor tensor,
                     InLayout(reads.tensors[i], layouts[i]));
    operands->push_back({reads.operand, static_cast<int>(i), tensor.buffer});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PlanBuilder::Written>> PlanBuilder::Emit(
    const std::string& name, std::unique_ptr<Primitive> primitive,
    absl::Span<const Reads> reads) {
  std::vector<BoundOperand> operands;
  std::vector<bool> is_read(kNumOperands, false);
  for (const Reads& role : reads) {
    is_read[static_cast<int>(role.operand)] = true;
    RETURN_IF_ERROR(Annotate(Bind(*primitive, role, &operands), name));
  }
  std::vector<Written> written;
  for (int i = 0; i < kNumOperands; ++i) {
    const Operand operand = static_cast<Operand>(i);
    if (is_read[i] || !primitive->takes(operand)) continue;
    Written role{operand, {}};
    for (const MemoryLayout& layout : primitive->layouts(operand)) {
      const PlanTensor tensor = NewTensor(layout);
      operands.push_back(
          {operand, static_cast<int>(role.tensors.size()), tensor.buffer});
      role.tensors.push_back(tensor);
    }
    written.push_back(std::move(role));
  }
  EmitBound(name, std::move(primitive), std::move(operands));
  return written;
}

void PlanBuilder::EmitBound(const std::string& name,
                            std::unique_ptr<Primitive> primitive,
                            std::vector<BoundOperand> operands) {
  Instruction instruction;
  instruction.name = name;
  instruction.device = device_;
  instruction.primitive = std::move(primitive);
  instruction.operands = std::move(operands);
  plan_.instructions.push_back(std::move(instruction));
}

absl::StatusOr<PlanTensor> PlanBuilder::Sum(
    const std::string& name, const std::vector<PlanTensor>& summands) {
  std::vector<PlanTensor> tensors;
  std::vector<MemoryLayout> layouts;
  for (const PlanTensor& summand : summands) {
    ASSIGN_OR_RETURN(const PlanTensor tensor, OnDevice(summand));
    tensors.push_back(tensor);
    layouts.push_back(tensor.layout);
  }
  if (tensors.size() == 1) return tensors[0];
  const AddDesc desc{static_cast<int>(tensors.size()), tensors[0].layout.shape};
  ASSIGN_OR_RETURN(std::unique_ptr<Primitive> add,
                   CreatePrimitive(backend(), desc, Pass::kForward, layouts));
  ASSIGN_OR_RETURN(const std::vector<Written> written,
                   Emit(name, std::move(add), {{Operand::kSrc, tensors}}));
  return Find(written, Operand::kDst)[0];
}

std::vector<PlanTensor> Find(absl::Span<const PlanBuilder::Written> written,
                             Operand operand) {
  const auto it = std::find_if(written.begin(), written.end(),
                               [operand](const PlanBuilder::Written& w) {
                                 return w.operand == operand;
                               });
  return it == written.end() ? std::vector<PlanTensor>() : it->tensors;
}

}  // namespace muster
