// The formulas are those of common/optimizer/x_ref.h, operation by operation.
// The functions that end in _rn are never contracted to a fused multiply-add,
// which would give other bits than the host's.
#include <algorithm>
#include <cmath>
#include <variant>

#include "worker/backend/cuda/kernel_grid.cuh"
#include "worker/backend/cuda/update_rule_kernel.h"

namespace muster {
namespace {

// a * b + c * d.
__device__ inline float SumOfProducts(float a, float b, float c, float d) {
  return __fadd_rn(__fmul_rn(a, b), __fmul_rn(c, d));
}

// a * b + c.
__device__ inline float ProductAndSum(float a, float b, float c) {
  return __fadd_rn(__fmul_rn(a, b), c);
}

// sqrt(a) + b.
__device__ inline float RootAndSum(float a, float b) {
  return __fadd_rn(__fsqrt_rn(a), b);
}

// SquarableGradient.
__device__ inline float Squarable(float gradient) {
  constexpr float kSmallest = kSmallestSquarable<float>;
  return fabsf(gradient) < kSmallest ? 0.0f : gradient;
}

__device__ inline float Descend(float parameter, float rate, float step) {
  return __fsub_rn(parameter, __fmul_rn(rate, step));
}

__device__ inline void UpdateAt(const SgdConstants<float>& c,
                                const UpdatedElements& e, int64_t i) {
  e.parameter[i] = Descend(e.parameter[i], c.learning_rate, e.gradient[i]);
}

__device__ inline void UpdateAt(const MomentumConstants<float>& c,
                                const UpdatedElements& e, int64_t i) {
  const float g = e.gradient[i];
  const float u = ProductAndSum(c.momentum, e.slots[0][i], g);
  const float step = c.nesterov ? ProductAndSum(c.momentum, u, g) : u;
  e.slots[0][i] = u;
  e.parameter[i] = Descend(e.parameter[i], c.learning_rate, step);
}

__device__ inline void UpdateAt(const AdagradConstants<float>& c,
                                const UpdatedElements& e, int64_t i) {
  const float g = Squarable(e.gradient[i]);
  const float a = __fadd_rn(e.slots[0][i], __fmul_rn(g, g));
  const float step =
      __fdiv_rn(__fmul_rn(c.learning_rate, g), RootAndSum(a, c.epsilon));
  e.slots[0][i] = a;
  e.parameter[i] = __fsub_rn(e.parameter[i], step);
}

__device__ inline void UpdateAt(const RmspropConstants<float>& c,
                                const UpdatedElements& e, int64_t i) {
  const float g = Squarable(e.gradient[i]);
  const float v =
      SumOfProducts(c.decay, e.slots[0][i], c.one_minus_decay, __fmul_rn(g, g));
  float step = __fdiv_rn(g, RootAndSum(v, c.epsilon));
  e.slots[0][i] = v;
  if (e.slots[1] != nullptr) {
    step = ProductAndSum(c.momentum, e.slots[1][i], step);
    e.slots[1][i] = step;
  }
  e.parameter[i] = Descend(e.parameter[i], c.learning_rate, step);
}

__device__ inline void UpdateAt(const AdamConstants<float>& c,
                                const UpdatedElements& e, int64_t i) {
  const float g = Squarable(e.gradient[i]);
  const float m = SumOfProducts(c.beta1, e.slots[0][i], c.one_minus_beta1, g);
  const float v =
      SumOfProducts(c.beta2, e.slots[1][i], c.one_minus_beta2, __fmul_rn(g, g));
  const float root = ProductAndSum(__fsqrt_rn(v), c.root_scale, c.epsilon);
  e.slots[0][i] = m;
  e.slots[1][i] = v;
  e.parameter[i] = __fsub_rn(__fmul_rn(c.shrinkage, e.parameter[i]),
                             __fdiv_rn(__fmul_rn(c.step_size, m), root));
}

__device__ inline void UpdateAt(const FtrlConstants<float>& c,
                                const UpdatedElements& e, int64_t i) {
  const float g = Squarable(e.gradient[i]);
  float n = e.slots[1][i];
  float p = e.parameter[i];
  const float old_strength =
      __fmul_rn(RootAndSum(n, c.beta), c.previous_inverse_rate);
  n = __fadd_rn(n, __fmul_rn(g, g));
  const float root = RootAndSum(n, c.beta);
  const float strength = __fmul_rn(root, c.inverse_rate);
  const float sigma = __fsub_rn(strength, old_strength);
  float z = __fadd_rn(e.slots[0][i], __fsub_rn(g, __fmul_rn(sigma, p)));
  const float shrunk = __fsub_rn(z, copysignf(c.l1, z));
  p = fabsf(z) <= c.l1 ? 0.0f : __fdiv_rn(-shrunk, __fadd_rn(strength, c.l2));
  if (c.scaled) {
    const float back =
        __fsub_rn(__fmul_rn(root, c.unscaled_inverse_rate), strength);
    z = __fsub_rn(z, __fmul_rn(back, p));
  }
  e.slots[0][i] = z;
  e.slots[1][i] = n;
  e.parameter[i] = p;
}

template <typename Constants>
__global__ void UpdateKernel(Constants constants, UpdatedElements elements) {
  for (int64_t i = GridIndex(); i < elements.n; i += GridSize()) {
    UpdateAt(constants, elements, i);
  }
}

template <typename Constants>
absl::Status LaunchUpdate(const KernelStream& to, const Constants& constants,
                          const UpdatedElements& elements) {
  return Launch(to, "Update", UpdateKernel<Constants>, BlocksFor(elements.n),
                kBlockThreads, constants, elements);
}

absl::Status LaunchUpdate(const KernelStream&, std::monostate,
                          const UpdatedElements&) {
  return absl::InternalError("update: the rule has no kernel");
}

__global__ void CountNonFiniteKernel(const float* values, int64_t n,
                                     int32_t* counts) {
  __shared__ int32_t shared[kBlockThreads];
  int32_t count = 0;
  for (int64_t i = GridIndex(); i < n; i += GridSize()) {
    // NaN for an infinity, and for NaN.
    if (!(values[i] - values[i] == 0)) ++count;
  }
  count = BlockSum(count, shared);
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

}  // namespace

absl::Status UpdateElements(const KernelStream& to,
                            const UpdateConstants& constants,
                            const UpdatedElements& elements) {
  return std::visit(
      [&](const auto& of_rule) { return LaunchUpdate(to, of_rule, elements); },
      constants);
}

absl::Status CountNonFinite(const KernelStream& to, const float* values,
                            int64_t n, int32_t* counts) {
  const int64_t blocks = std::min<int64_t>(BlocksFor(n).x, kNonFiniteCounts);
  return Launch(to, "CountNonFinite", CountNonFiniteKernel,
                static_cast<unsigned>(blocks), kBlockThreads, values, n,
                counts);
}

}  // namespace muster
