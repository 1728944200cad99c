#include "tests/worker/backend/cuda/fake_cublas.h"

#include <cstring>
#include <initializer_list>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "tests/worker/backend/cuda/fake_numbers.h"

namespace muster {
namespace {

constexpr cublasStatus_t kOk = CUBLAS_STATUS_SUCCESS;
constexpr cublasStatus_t kInvalid = CUBLAS_STATUS_INVALID_VALUE;
constexpr cublasStatus_t kNotSupported = CUBLAS_STATUS_NOT_SUPPORTED;

constexpr uint64_t kMagic = 0x6661b1a5;
constexpr uint64_t kWorkspaceBytes = 1000;
constexpr uint64_t kWorkspaceAlignment = 256;
constexpr int kSpoilt = 0xFF;

template <typename T>
cublasStatus_t SetValue(const void* value, size_t bytes, T* to) {
  if (value == nullptr || bytes != sizeof(T)) return kInvalid;
  std::memcpy(to, value, sizeof(T));
  return kOk;
}

bool IsAligned(const void* memory, uint64_t alignment) {
  return reinterpret_cast<uintptr_t>(memory) % alignment == 0;
}

void Count(size_t alive, const char* what, std::string* leaks) {
  if (alive == 0) return;
  absl::StrAppend(leaks, leaks->empty() ? "" : ", ", alive, " ", what,
                  alive == 1 ? "" : "s");
}

// A factor's value as the units take it.
float LoadFactor(cudaDataType_t type, bool tf32, const void* memory,
                 int64_t i) {
  if (type == CUDA_R_16BF) {
    return FromBf16(static_cast<const uint16_t*>(memory)[i]);
  }
  const float value = static_cast<const float*>(memory)[i];
  return tf32 ? RoundToTf32(value) : value;
}

}  // namespace

CublasFunctions FakeCublas::functions() {
  CublasFunctions functions;
  functions.GetVersion = [] { return size_t{CUBLAS_VERSION}; };
  functions.GetStatusString = [](cublasStatus_t status) {
    switch (status) {
      case CUBLAS_STATUS_SUCCESS:
        return "CUBLAS_STATUS_SUCCESS";
      case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
      case CUBLAS_STATUS_NOT_SUPPORTED:
        return "CUBLAS_STATUS_NOT_SUPPORTED";
      default:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    }
  };
  functions.Create = Bind(&FakeCublas::Create);
  functions.Destroy = Bind(&FakeCublas::Destroy);
  functions.MatmulDescCreate = Bind(&FakeCublas::DescCreate);
  functions.MatmulDescDestroy = Bind(&FakeCublas::DescDestroy);
  functions.MatmulDescSetAttribute = Bind(&FakeCublas::DescSetAttribute);
  functions.MatrixLayoutCreate = Bind(&FakeCublas::LayoutCreate);
  functions.MatrixLayoutDestroy = Bind(&FakeCublas::LayoutDestroy);
  functions.MatmulPreferenceCreate = Bind(&FakeCublas::PreferenceCreate);
  functions.MatmulPreferenceDestroy = Bind(&FakeCublas::PreferenceDestroy);
  functions.MatmulPreferenceSetAttribute =
      Bind(&FakeCublas::PreferenceSetAttribute);
  functions.MatmulAlgoGetHeuristic = Bind(&FakeCublas::AlgoGetHeuristic);
  functions.Matmul = Bind(&FakeCublas::Matmul);
  return functions;
}

std::string FakeCublas::Leaks() const {
  const absl::MutexLock lock(&mu_);
  std::string leaks;
  Count(handles_.alive(), "handle", &leaks);
  Count(operations_.alive(), "matmul descriptor", &leaks);
  Count(layouts_.alive(), "matrix layout", &leaks);
  Count(preferences_.alive(), "matmul preference", &leaks);
  return leaks;
}

cublasStatus_t FakeCublas::Create(cublasLtHandle_t* handle) {
  if (handle == nullptr) return kInvalid;
  const absl::MutexLock lock(&mu_);
  *handle = handles_.Make({current_device_()});
  return kOk;
}

cublasStatus_t FakeCublas::Destroy(cublasLtHandle_t handle) {
  const absl::MutexLock lock(&mu_);
  return handles_.Destroy(handle) ? kOk : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t FakeCublas::DescCreate(cublasLtMatmulDesc_t* operation,
                                      cublasComputeType_t compute,
                                      cudaDataType_t scale) {
  if (operation == nullptr) return kInvalid;
  const absl::MutexLock lock(&mu_);
  Operation state;
  state.compute = compute;
  state.scale = scale;
  *operation = operations_.Make(state);
  return kOk;
}

cublasStatus_t FakeCublas::DescDestroy(cublasLtMatmulDesc_t operation) {
  const absl::MutexLock lock(&mu_);
  return operations_.Destroy(operation) ? kOk : kInvalid;
}

cublasStatus_t FakeCublas::DescSetAttribute(
    cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t attribute,
    const void* value, size_t bytes) {
  const absl::MutexLock lock(&mu_);
  Operation* const state = operations_.Find(operation);
  if (state == nullptr) return kInvalid;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return SetValue(value, bytes, &state->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return SetValue(value, bytes, &state->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return SetValue(value, bytes, &state->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return SetValue(value, bytes, &state->bias);
    default:  // cuBLASLt has more; this fake has not.
      return kNotSupported;
  }
}

cublasStatus_t FakeCublas::LayoutCreate(cublasLtMatrixLayout_t* layout,
                                        cudaDataType_t type, uint64_t rows,
                                        uint64_t columns, int64_t leading) {
  if (layout == nullptr) return kInvalid;
  const absl::MutexLock lock(&mu_);
  *layout = layouts_.Make({type, static_cast<int64_t>(rows),
                           static_cast<int64_t>(columns), leading});
  return kOk;
}

cublasStatus_t FakeCublas::LayoutDestroy(cublasLtMatrixLayout_t layout) {
  const absl::MutexLock lock(&mu_);
  return layouts_.Destroy(layout) ? kOk : kInvalid;
}

cublasStatus_t FakeCublas::PreferenceCreate(
    cublasLtMatmulPreference_t* preference) {
  if (preference == nullptr) return kInvalid;
  const absl::MutexLock lock(&mu_);
  *preference = preferences_.Make();
  return kOk;
}

cublasStatus_t FakeCublas::PreferenceDestroy(
    cublasLtMatmulPreference_t preference) {
  const absl::MutexLock lock(&mu_);
  return preferences_.Destroy(preference) ? kOk : kInvalid;
}

cublasStatus_t FakeCublas::PreferenceSetAttribute(
    cublasLtMatmulPreference_t preference,
    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
    size_t bytes) {
  const absl::MutexLock lock(&mu_);
  Preference* const state = preferences_.Find(preference);
  if (state == nullptr) return kInvalid;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return SetValue(value, bytes, &state->workspace_bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return SetValue(value, bytes, &state->alignments[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return SetValue(value, bytes, &state->alignments[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return SetValue(value, bytes, &state->alignments[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return SetValue(value, bytes, &state->alignments[3]);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return SetValue(value, bytes, &state->reductions);
    default:  // cuBLASLt has more; this fake has not.
      return kNotSupported;
  }
}

// cuBLASLt has more of each; this fake has not.
bool FakeCublas::IsSupported(const Operation& how, const Layout& a,
                             const Layout& b, const Layout& c,
                             const Layout& d) {
  const bool is_bf16 = a.type == CUDA_R_16BF;
  if (a.type != b.type || (!is_bf16 && a.type != CUDA_R_32F)) return false;
  if (c.type != CUDA_R_32F || d.type != CUDA_R_32F) return false;
  if (how.scale != CUDA_R_32F) return false;
  if (how.compute != CUBLAS_COMPUTE_32F &&
      (how.compute != CUBLAS_COMPUTE_32F_FAST_TF32 || is_bf16)) {
    return false;
  }
  return how.epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
         how.epilogue == CUBLASLT_EPILOGUE_RELU ||
         how.epilogue == CUBLASLT_EPILOGUE_BIAS ||
         how.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

cublasStatus_t FakeCublas::Describe(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, Product* product) {
  const absl::MutexLock lock(&mu_);
  const Handle* const of = handles_.Find(handle);
  if (of == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (of->device != current_device_()) return kInvalid;
  const Operation* const how = operations_.Find(operation);
  const Layout* const as = layouts_.Find(a);
  const Layout* const bs = layouts_.Find(b);
  const Layout* const cs = layouts_.Find(c);
  const Layout* const ds = layouts_.Find(d);
  for (const void* found :
       std::initializer_list<const void*>{how, as, bs, cs, ds}) {
    if (found == nullptr) return kInvalid;
  }
  // Looked at here and not where they are made.
  for (const Layout* layout : {as, bs, cs, ds}) {
    if (layout->rows < 1 || layout->columns < 1) return kInvalid;
    if (layout->leading < layout->rows) return kInvalid;
  }
  const bool a_turned = how->transpose_a == CUBLAS_OP_T;
  const bool b_turned = how->transpose_b == CUBLAS_OP_T;
  const int64_t depth = a_turned ? as->rows : as->columns;
  if ((a_turned ? as->columns : as->rows) != ds->rows) return kInvalid;
  if ((b_turned ? bs->rows : bs->columns) != ds->columns) return kInvalid;
  if ((b_turned ? bs->columns : bs->rows) != depth) return kInvalid;
  if (cs->rows != ds->rows || cs->columns != ds->columns) return kInvalid;
  const bool has_bias = (how->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  if (has_bias && how->bias == nullptr) return kInvalid;
  if (!IsSupported(*how, *as, *bs, *cs, *ds)) return kNotSupported;
  *product = {*how, *as, *bs, *ds, depth};
  return kOk;
}

uint64_t FakeCublas::FingerprintOf(const Product& p) {
  return absl::HashOf(static_cast<int>(p.operation.compute),
                      p.operation.transpose_a, p.operation.transpose_b,
                      p.operation.epilogue, static_cast<int>(p.a.type),
                      p.a.rows, p.a.columns, p.a.leading, p.b.rows, p.b.columns,
                      p.b.leading, p.d.leading);
}

cublasStatus_t FakeCublas::AlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation,
    cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t preference, int wanted,
    cublasLtMatmulHeuristicResult_t* results, int* found) {
  if (wanted < 1 || results == nullptr || found == nullptr) return kInvalid;
  Product product;
  const cublasStatus_t status =
      Describe(handle, operation, a, b, c, d, &product);
  if (status != kOk) return status;
  Preference prefers;
  {
    const absl::MutexLock lock(&mu_);
    const Preference* const state = preferences_.Find(preference);
    if (state == nullptr) return kInvalid;
    prefers = *state;
  }
  *found = 0;
  if (wanted > 1) {
    results[*found] = {};
    results[(*found)++].state = kNotSupported;
  }
  Algorithm algorithm = {};
  algorithm.magic = kMagic;
  algorithm.fingerprint = FingerprintOf(product);
  if (prefers.workspace_bytes >= kWorkspaceBytes) {
    algorithm.workspace_bytes = kWorkspaceBytes;
  }
  std::memcpy(algorithm.alignments, prefers.alignments,
              sizeof(algorithm.alignments));
  const auto offer = [&](bool in_place) {
    cublasLtMatmulHeuristicResult_t& result = results[(*found)++];
    result = {};
    algorithm.in_place = in_place;
    static_assert(sizeof(algorithm) <= sizeof(result.algo), "");
    std::memcpy(&result.algo, &algorithm, sizeof(algorithm));
    result.workspaceSize = algorithm.workspace_bytes;
    result.state = kOk;
  };
  // The faster one, where it may be taken.
  if ((prefers.reductions & CUBLASLT_REDUCTION_SCHEME_INPLACE) != 0) {
    offer(/*in_place=*/true);
  }
  if (*found < wanted) offer(/*in_place=*/false);
  return kOk;
}

cublasStatus_t FakeCublas::CheckOperands(
    const Algorithm& chosen, const std::array<const void*, 4>& operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == nullptr) return kInvalid;
    if (!IsAligned(operands[i], chosen.alignments[i])) return kNotSupported;
  }
  return kOk;
}

cublasStatus_t FakeCublas::Matmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t operation, const void* alpha,
    const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
    cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
    cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
    const cublasLtMatmulAlgo_t* algorithm, void* workspace,
    size_t workspace_bytes, cudaStream_t stream) {
  Product product;
  const cublasStatus_t status = Describe(handle, operation, a_layout, b_layout,
                                         c_layout, d_layout, &product);
  if (status != kOk) return status;
  // cuBLASLt would look for an algorithm of its own; in a step that costs time.
  if (algorithm == nullptr) return kNotSupported;
  Algorithm chosen;
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  if (chosen.magic != kMagic || chosen.fingerprint != FingerprintOf(product)) {
    return kInvalid;
  }
  const cublasStatus_t placed = CheckOperands(chosen, {a, b, c, d});
  if (placed != kOk) return placed;
  if (alpha == nullptr || beta == nullptr) return kInvalid;
  if (workspace_bytes < chosen.workspace_bytes) return kInvalid;
  if (workspace_bytes > 0 &&
      (workspace == nullptr || !IsAligned(workspace, kWorkspaceAlignment))) {
    return kInvalid;
  }
  product.from_last = chosen.in_place && in_place_.fetch_add(1) % 2 == 1;
  const cudaError_t error =
      enqueue_(stream, [product, a, b, c, d, workspace, workspace_bytes,
                        alpha = *static_cast<const float*>(alpha),
                        beta = *static_cast<const float*>(beta)] {
        if (workspace_bytes > 0) {
          std::memset(workspace, kSpoilt, workspace_bytes);
        }
        product.Compute(a, b, alpha, static_cast<const float*>(c), beta,
                        static_cast<float*>(d));
      });
  return error == cudaSuccess ? kOk : CUBLAS_STATUS_EXECUTION_FAILED;
}

void FakeCublas::Product::Compute(const void* a_memory, const void* b_memory,
                                  float alpha, const float* c_memory,
                                  float beta, float* d_memory) const {
  const bool tf32 = operation.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const bool a_turned = operation.transpose_a == CUBLAS_OP_T;
  const bool b_turned = operation.transpose_b == CUBLAS_OP_T;
  const bool has_bias = (operation.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
  const bool relu = (operation.epilogue & CUBLASLT_EPILOGUE_RELU) != 0;
  const float* const bias = static_cast<const float*>(operation.bias);
  for (int64_t column = 0; column < d.columns; ++column) {
    for (int64_t row = 0; row < d.rows; ++row) {
      float sum = 0;
      for (int64_t i = 0; i < depth; ++i) {
        const int64_t k = from_last ? depth - 1 - i : i;
        sum +=
            LoadFactor(a.type, tf32, a_memory,
                       a_turned ? row * a.leading + k : k * a.leading + row) *
            LoadFactor(
                b.type, tf32, b_memory,
                b_turned ? k * b.leading + column : column * b.leading + k);
      }
      const int64_t at = column * d.leading + row;
      float value = alpha * sum;
      if (beta != 0) value += beta * c_memory[at];
      if (has_bias) value += bias[row];
      // Real cards make 0 of NaN, too.
      d_memory[at] = relu && !(value > 0) ? 0 : value;
    }
  }
}

}  // namespace muster
