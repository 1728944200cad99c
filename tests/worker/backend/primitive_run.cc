#include "tests/worker/backend/primitive_run.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "common/base/status_macros.h"
#include "common/tensor/dtype.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

// A quiet NaN in float and double, 255 in a byte.
constexpr int kPoison = 0xFF;

AlignedBuffer ToBuffer(const Values& values, DataType dtype) {
  AlignedBuffer buffer(values.size() * SizeOf(dtype));
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == FLOAT32) {
      buffer.as<float>()[i] = static_cast<float>(values[i]);
    } else {
      buffer.as<double>()[i] = values[i];
    }
  }
  return buffer;
}

Values ToValues(const char* data, DataType dtype, int64_t n) {
  Values values(n);
  for (int64_t i = 0; i < n; ++i) {
    switch (dtype) {
      case FLOAT32:
        values[i] = reinterpret_cast<const float*>(data)[i];
        break;
      case FLOAT64:
        values[i] = reinterpret_cast<const double*>(data)[i];
        break;
      case INT64:
        values[i] =
            static_cast<double>(reinterpret_cast<const int64_t*>(data)[i]);
        break;
      default:
        ADD_FAILURE() << "no values of " << DataTypeName(dtype);
    }
  }
  return values;
}

// An operand's bytes on the host.
struct HostBytes {
  Operand operand;
  int index;
  char* data;
  int64_t bytes;
};

// On a backend with streams: copies all to the device, executes, and copies all
// back. Operands of one address share memory there, too.
absl::Status ExecuteOnDevice(DeviceStreams* streams, Primitive* primitive,
                             const Operands& host,
                             const std::vector<HostBytes>& all) {
  RETURN_IF_ERROR(streams->MakeCurrent());
  std::map<char*, std::unique_ptr<DeviceStreams::Buffer>> memory;
  Operands operands;
  operands.rows = host.rows;
  for (const HostBytes& one : all) {
    auto& buffer = memory[one.data];
    if (buffer == nullptr) {
      ASSIGN_OR_RETURN(buffer, streams->Allocate(one.bytes, "an operand"));
      RETURN_IF_ERROR(
          streams->CopyToDevice(buffer->data(), one.data, one.bytes));
    }
    operands.Set(one.operand, buffer->data(), one.index);
  }
  ASSIGN_OR_RETURN(const auto seed,
                   streams->Allocate(sizeof(host.seed), "a seed"));
  RETURN_IF_ERROR(
      streams->CopyToDevice(seed->data(), &host.seed, sizeof(host.seed)));
  operands.device_seed = reinterpret_cast<const uint64_t*>(seed->data());
  RETURN_IF_ERROR(streams->Synchronize());
  RETURN_IF_ERROR(primitive->Execute(operands));
  RETURN_IF_ERROR(streams->Synchronize());
  for (const HostBytes& one : all) {
    RETURN_IF_ERROR(
        streams->CopyToHost(one.data, memory[one.data]->data(), one.bytes));
  }
  return streams->Synchronize();
}

absl::Status ExecuteAnywhere(Backend* backend, Primitive* primitive,
                             const Operands& host) {
  if (backend->streams() == nullptr) return primitive->Execute(host);
  std::vector<HostBytes> all;
  for (int i = 0; i < kNumOperands; ++i) {
    const Operand operand = static_cast<Operand>(i);
    const auto layouts = primitive->layouts(operand);
    for (int j = 0; j < static_cast<int>(layouts.size()); ++j) {
      all.push_back(
          {operand, j, host.As<char>(operand, j), layouts[j].size_bytes});
    }
  }
  return ExecuteOnDevice(backend->streams(), primitive, host, all);
}

void Reorder(Backend* backend, const MemoryLayout& from, const void* src,
             const MemoryLayout& to, void* dst) {
  auto reorder =
      backend->Create(ReorderDesc{from.shape}, Pass::kForward, {from, to});
  ASSERT_TRUE(reorder.ok()) << reorder.status();
  Operands operands;
  operands.Set(Operand::kSrc, src);
  operands.Set(Operand::kDst, dst);
  AlignedBuffer scratch;
  if ((*reorder)->takes(Operand::kScratch)) {
    scratch = AlignedBuffer((*reorder)->layout(Operand::kScratch).size_bytes);
    operands.Set(Operand::kScratch, scratch.data());
  }
  const absl::Status status =
      ExecuteAnywhere(backend, reorder->get(), operands);
  ASSERT_TRUE(status.ok()) << status;
}

}  // namespace

Values RandomValues(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int> steps(-2048, 2047);
  Values values(n);
  for (double& value : values) value = steps(random) / 2048.0;
  return values;
}

PrimitiveRun::PrimitiveRun(Backend* backend, Backend::Created primitive)
    : backend_(backend) {
  if (!primitive.ok()) {
    ADD_FAILURE() << primitive.status();
    return;
  }
  primitive_ = *std::move(primitive);
  for (int i = 0; i < kNumOperands; ++i) {
    const Operand operand = static_cast<Operand>(i);
    const auto layouts = primitive_->layouts(operand);
    for (int j = 0; j < static_cast<int>(layouts.size()); ++j) {
      AlignedBuffer buffer(layouts[j].size_bytes);
      std::memset(buffer.data(), kPoison, layouts[j].size_bytes);
      operands_.Set(operand, buffer.data(), j);
      memory_[{operand, j}] = std::move(buffer);
    }
  }
}

PrimitiveRun& PrimitiveRun::Set(Operand operand, const Values& values,
                                int index) {
  const MemoryLayout& layout = primitive_->layouts(operand)[index];
  EXPECT_EQ(static_cast<int64_t>(values.size()), layout.shape.num_elements())
      << OperandName(operand);
  const AlignedBuffer canonical = ToBuffer(values, layout.dtype);
  char* const to = memory_[{operand, index}].data();
  if (layout.is_row_major()) {
    std::memcpy(to, canonical.data(), canonical.size_bytes());
  } else {
    Reorder(backend_, MemoryLayout::RowMajor(layout.dtype, layout.shape),
            canonical.data(), layout, to);
  }
  return *this;
}

PrimitiveRun& PrimitiveRun::SetLabels(const std::vector<int32_t>& labels) {
  std::memcpy(memory_[{Operand::kLabels, 0}].data(), labels.data(),
              labels.size() * sizeof(int32_t));
  return *this;
}

PrimitiveRun& PrimitiveRun::Share(Operand operand, const PrimitiveRun& other) {
  if (!primitive_->takes(operand)) return *this;
  EXPECT_EQ(primitive_->layout(operand).ToString(),
            other.primitive_->layout(operand).ToString())
      << OperandName(operand);
  const AlignedBuffer& from = other.memory_.at({operand, 0});
  std::memcpy(memory_[{operand, 0}].data(), from.data(), from.size_bytes());
  return *this;
}

PrimitiveRun& PrimitiveRun::Alias(Operand result, Operand operand) {
  EXPECT_TRUE(primitive_->in_place());
  const AlignedBuffer& from = memory_[{operand, 0}];
  AlignedBuffer copy(from.size_bytes());
  std::memcpy(copy.data(), from.data(), from.size_bytes());
  operands_.Set(result, copy.data());
  operands_.Set(operand, copy.data());
  memory_[{result, 0}] = std::move(copy);
  return *this;
}

absl::Status PrimitiveRun::Execute() {
  return ExecuteAnywhere(backend_, primitive_.get(), operands_);
}

Values PrimitiveRun::Get(Operand operand, int index) const {
  const MemoryLayout& layout = primitive_->layouts(operand)[index];
  const char* from = memory_.at({operand, index}).data();
  const MemoryLayout canonical =
      MemoryLayout::RowMajor(layout.dtype, layout.shape);
  AlignedBuffer result(canonical.size_bytes);
  if (!layout.is_row_major()) {
    Reorder(backend_, layout, from, canonical, result.data());
    from = result.data();
  }
  return ToValues(from, layout.dtype, layout.shape.num_elements());
}

std::vector<char> PrimitiveRun::Bytes(Operand operand) const {
  const AlignedBuffer& buffer = memory_.at({operand, 0});
  return {buffer.data(), buffer.data() + buffer.size_bytes()};
}

void ExpectNear(const Values& found, const Values& wanted, double absolute,
                double relative, const char* what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    const double tolerance = absolute + relative * std::abs(wanted[i]);
    // Written so that NaN fails.
    ASSERT_TRUE(std::abs(found[i] - wanted[i]) <= tolerance)
        << what << "[" << i << "]: found " << found[i] << ", wanted "
        << wanted[i] << " within " << tolerance;
  }
}

double SumTolerance(int64_t terms, double magnitude) {
  return std::numeric_limits<float>::epsilon() * magnitude *
         (8 + static_cast<double>(terms));
}

}  // namespace muster
