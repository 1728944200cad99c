#ifndef TESTS_WORKER_BACKEND_PRIMITIVE_RUN_H_
#define TESTS_WORKER_BACKEND_PRIMITIVE_RUN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/tensor/aligned_buffer.h"
#include "worker/backend/backend.h"

namespace muster {

using Values = std::vector<double>;

// `n` values in [-1, 1) that float holds exactly, the same for every call.
Values RandomValues(int64_t n, uint64_t seed);

// Runs one primitive of any backend on canonical values: puts each operand in
// the layout that the primitive wants, and takes results back; of a backend
// with streams, to its device and back. Memory that was not set is full of NaN,
// so that what is not written shows. Fails the test (EXPECT, or an empty
// result) on any error.
class PrimitiveRun {
 public:
  // `backend` must outlive the run.
  PrimitiveRun(Backend* backend, Backend::Created primitive);

  bool ok() const { return primitive_ != nullptr; }
  const Primitive& primitive() const { return *primitive_; }
  Operands& operands() { return operands_; }

  // float32 and float64 operands: row-major values.
  PrimitiveRun& Set(Operand operand, const Values& values, int index = 0);
  PrimitiveRun& SetLabels(const std::vector<int32_t>& labels);
  // The bytes of another run's operand, as they lie: workspaces.
  PrimitiveRun& Share(Operand operand, const PrimitiveRun& other);
  // Puts `result` where `operand` lies, for in_place() primitives.
  PrimitiveRun& Alias(Operand result, Operand operand);

  absl::Status Execute();

  // Row-major values of a float32, float64 or int64 operand.
  Values Get(Operand operand, int index = 0) const;
  // The bytes of an operand, as they lie.
  std::vector<char> Bytes(Operand operand) const;

 private:
  using Key = std::pair<Operand, int>;

  Backend* const backend_;
  std::unique_ptr<Primitive> primitive_;
  std::map<Key, AlignedBuffer> memory_;
  Operands operands_;
};

// EXPECTs |found - wanted| <= absolute + relative * |wanted| everywhere.
void ExpectNear(const Values& found, const Values& wanted, double absolute,
                double relative, const char* what);

// The absolute tolerance of a float32 sum of `terms` terms of at most
// `magnitude`: each addition rounds by half an ulp of a partial sum that is at
// most terms * magnitude, and in random data about its root; so this is loose
// by about sqrt(terms), and an operand mixed up is far outside.
double SumTolerance(int64_t terms, double magnitude = 1);

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_PRIMITIVE_RUN_H_
