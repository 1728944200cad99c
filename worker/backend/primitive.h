#ifndef WORKER_BACKEND_PRIMITIVE_H_
#define WORKER_BACKEND_PRIMITIVE_H_

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/backend/element_runs.h"
#include "worker/backend/memory_layout.h"

namespace muster {

// The roles of memory in an operation. operation.h says for each operation
// which it takes and which of them it writes.
enum class Operand {
  kSrc,      // several for Add and Concat
  kWeights,  // batch norm: gamma
  kBias,     // batch norm: beta
  kDst,
  kDiffSrc,  // several for Concat
  kDiffWeights,
  kDiffBias,
  kDiffDst,
  kMean,
  kVariance,
  kLabels,
  kRowWeights,
  kLoss,
  kCorrect,
  kWorkspace,  // written by forward, read by its backward: keep in between
  kScratch,    // of no meaning outside Execute: any two primitives may share
};
constexpr int kNumOperands = static_cast<int>(Operand::kScratch) + 1;

// "diff_weights"
const char* OperandName(Operand operand);

// Where the operands of one primitive lie. A view: owns no memory. Built once
// by the compiler and passed to every Execute; only `seed`, `rows` and the
// pointers of a batch change between steps.
class Operands {
 public:
  // Sets operand `index` of those with this role. `memory` is aligned to 64
  // bytes and holds the size_bytes of the primitive's layout; the primitive
  // writes only to operands that it defines.
  void Set(Operand operand, void* memory, int index = 0) {
    auto& pointers = pointers_[static_cast<size_t>(operand)];
    if (index >= static_cast<int>(pointers.size())) {
      pointers.resize(index + 1, nullptr);
    }
    pointers[index] = memory;
  }
  // For operands that the primitive only reads.
  void Set(Operand operand, const void* memory, int index = 0) {
    Set(operand, const_cast<void*>(memory), index);
  }

  // nullptr if it is not set.
  void* Get(Operand operand, int index = 0) const {
    const auto& pointers = pointers_[static_cast<size_t>(operand)];
    return index < static_cast<int>(pointers.size()) ? pointers[index]
                                                     : nullptr;
  }
  template <typename T>
  T* As(Operand operand, int index = 0) const {
    return static_cast<T*>(Get(operand, index));
  }

  // Dropout: chooses the mask. Must differ between layers and steps.
  uint64_t seed = 0;
  // On a backend with streams the seed is read here, in device memory, when the
  // work is done: a graph that was captured once has another seed each time.
  const uint64_t* device_seed = nullptr;
  // Dropout: its elements in the whole batch, of which the operands are some
  // rows or channels.
  ElementRuns elements;
  // Softmax cross-entropy: the rows that count, in [1, N].
  int64_t rows = 0;

 private:
  std::array<absl::InlinedVector<void*, 1>, kNumOperands> pointers_;
};

// One operation made ready for fixed shapes and layouts: forward, or one of
// its backward parts. Made by a Backend, which must outlive it. One thread at
// a time.
class Primitive {
 public:
  virtual ~Primitive() = default;
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;

  // The layouts that this primitive wants for an operand: none if it does not
  // take it, several for an n-ary one.
  absl::Span<const MemoryLayout> layouts(Operand operand) const {
    return layouts_[static_cast<size_t>(operand)];
  }
  bool takes(Operand operand) const { return !layouts(operand).empty(); }
  // REQUIRES: takes(operand).
  const MemoryLayout& layout(Operand operand) const {
    assert(takes(operand));
    return layouts(operand)[0];
  }

  // Whether the result may lie where an input lies: kDst on (the first) kSrc,
  // or, of a backward primitive, kDiffSrc on kDiffDst.
  bool in_place() const { return in_place_; }

  // How it computes, for --log_device_placement: "oneDNN brgconv:avx512_core".
  // Empty: there was no choice.
  virtual std::string description() const { return ""; }

  // Computes; on a backend with streams, puts the work into kCompute and
  // returns. Every operand that it takes must be set; all that it writes is
  // overwritten unless operation.h says that it adds. Allocates nothing; on a
  // backend without streams, starts nothing that outlives the call. Errors:
  // Internal if an operand is missing or the library fails; InvalidArgument on
  // a label or row count out of range.
  absl::Status Execute(const Operands& operands);

 protected:
  Primitive() = default;

  // For constructors: states an operand (appends, for an n-ary one).
  void Take(Operand operand, MemoryLayout layout) {
    layouts_[static_cast<size_t>(operand)].push_back(std::move(layout));
  }
  void AllowInPlace() { in_place_ = true; }

 private:
  // Does the work of Execute, with all operands there.
  virtual absl::Status Run(const Operands& operands) = 0;

  std::array<std::vector<MemoryLayout>, kNumOperands> layouts_;
  bool in_place_ = false;
};

}  // namespace muster

#endif  // WORKER_BACKEND_PRIMITIVE_H_
