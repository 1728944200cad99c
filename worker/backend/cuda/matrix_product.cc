#include "worker/backend/cuda/matrix_product.h"

#include <array>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/gpu_status.h"

namespace muster {
namespace {

// cuBLAS' recommendation for Hopper; other cards want less.
constexpr uint64_t kMostWorkspaceBytes = uint64_t{32} << 20;
// Every operand's (Operands::Set).
constexpr uint32_t kAlignment = 64;
// How the parts of a sum that is cut along its length are added: in a step of
// its own, from the workspace, in a fixed order. In place (in dst) the order is
// that in which the parts come, and the bits may be others in every run.
constexpr uint32_t kReductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
// The first that cuBLASLt estimates to be the fastest may not be usable.
constexpr int kAlgorithms = 8;

cublasComputeType_t ComputeType(const CudaPrecision& precision) {
  return precision.tf32 && !precision.bf16 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                           : CUBLAS_COMPUTE_32F;
}

cudaDataType_t FactorType(const CudaPrecision& precision) {
  return precision.bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// Not those with a ReLU: they make 0 of NaN.
cublasLtEpilogue_t EpilogueOf(const MatrixProduct::Options& options) {
  return options.has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

MatrixProduct::MatrixProduct(CudaDevice* device, const Options& options,
                             std::string what)
    : device_(device),
      options_(options),
      what_(std::move(what)),
      operation_(device->gpu().cublas.MatmulDescDestroy),
      a_(device->gpu().cublas.MatrixLayoutDestroy),
      b_(device->gpu().cublas.MatrixLayoutDestroy),
      d_(device->gpu().cublas.MatrixLayoutDestroy) {}

absl::StatusOr<std::unique_ptr<MatrixProduct>> MatrixProduct::Create(
    CudaDevice* device, const Options& options, const std::string& what) {
  auto product = absl::WrapUnique(new MatrixProduct(device, options, what));
  RETURN_IF_ERROR(product->CreateOperation());
  RETURN_IF_ERROR(product->CreateLayouts());
  RETURN_IF_ERROR(product->ChooseAlgorithm());
  return product;
}

absl::Status MatrixProduct::Check(cublasStatus_t error) const {
  return CheckCublas(device_->gpu(), error, [this] { return what_; });
}

template <typename T>
absl::Status MatrixProduct::Set(cublasLtMatmulDescAttributes_t attribute,
                                const T& value) {
  return Check(device_->gpu().cublas.MatmulDescSetAttribute(
      operation_.get(), attribute, &value, sizeof(value)));
}

absl::Status MatrixProduct::CreateOperation() {
  const auto turned = [](bool transpose) {
    return static_cast<int32_t>(transpose ? CUBLAS_OP_T : CUBLAS_OP_N);
  };
  RETURN_IF_ERROR(Check(device_->gpu().cublas.MatmulDescCreate(
      operation_.put(), ComputeType(device_->precision()), CUDA_R_32F)));
  RETURN_IF_ERROR(
      Set(CUBLASLT_MATMUL_DESC_TRANSA, turned(options_.transpose_a)));
  RETURN_IF_ERROR(
      Set(CUBLASLT_MATMUL_DESC_TRANSB, turned(options_.transpose_b)));
  RETURN_IF_ERROR(Set(CUBLASLT_MATMUL_DESC_EPILOGUE,
                      static_cast<uint32_t>(EpilogueOf(options_))));
  if (!options_.has_bias) return absl::OkStatus();
  // Without an address there are no algorithms for a bias; Run sets the real
  // one.
  return Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
             reinterpret_cast<const void*>(uintptr_t{kAlignment}));
}

absl::Status MatrixProduct::CreateLayouts() {
  const Options& o = options_;
  const auto create = [this](cudaDataType_t type, int64_t rows, int64_t columns,
                             CublasLayout* layout) {
    return Check(device_->gpu().cublas.MatrixLayoutCreate(
        layout->put(), type, rows, columns, /*leading dimension*/ rows));
  };
  const cudaDataType_t factor = FactorType(device_->precision());
  RETURN_IF_ERROR(create(factor, o.transpose_a ? o.depth : o.rows,
                         o.transpose_a ? o.rows : o.depth, &a_));
  RETURN_IF_ERROR(create(factor, o.transpose_b ? o.columns : o.depth,
                         o.transpose_b ? o.depth : o.columns, &b_));
  return create(CUDA_R_32F, o.rows, o.columns, &d_);
}

absl::Status MatrixProduct::CreatePreference(
    CublasPreference* preference) const {
  const CublasFunctions& cublas = device_->gpu().cublas;
  RETURN_IF_ERROR(Check(cublas.MatmulPreferenceCreate(preference->put())));
  RETURN_IF_ERROR(Check(cublas.MatmulPreferenceSetAttribute(
      preference->get(), CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      &kMostWorkspaceBytes, sizeof(kMostWorkspaceBytes))));
  RETURN_IF_ERROR(Check(cublas.MatmulPreferenceSetAttribute(
      preference->get(), CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      &kReductions, sizeof(kReductions))));
  for (const cublasLtMatmulPreferenceAttributes_t operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    RETURN_IF_ERROR(Check(cublas.MatmulPreferenceSetAttribute(
        preference->get(), operand, &kAlignment, sizeof(kAlignment))));
  }
  return absl::OkStatus();
}

absl::Status MatrixProduct::ChooseAlgorithm() {
  const CublasFunctions& cublas = device_->gpu().cublas;
  CublasPreference preference(cublas.MatmulPreferenceDestroy);
  RETURN_IF_ERROR(CreatePreference(&preference));
  std::array<cublasLtMatmulHeuristicResult_t, kAlgorithms> results;
  int found = 0;
  const cublasStatus_t listed = cublas.MatmulAlgoGetHeuristic(
      device_->cublas(), operation_.get(), a_.get(), b_.get(), d_.get(),
      d_.get(), preference.get(), kAlgorithms, results.data(), &found);
  if (listed == CUBLAS_STATUS_NOT_SUPPORTED) {
    found = 0;
  } else {
    RETURN_IF_ERROR(Check(listed));
  }
  for (int i = 0; i < found; ++i) {
    if (results[i].state != CUBLAS_STATUS_SUCCESS) continue;
    algorithm_ = results[i].algo;
    workspace_bytes_ = static_cast<int64_t>(results[i].workspaceSize);
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat(what_, ": of ", found,
                   " algorithms that cuBLAS names this device can run none"));
}

absl::Status MatrixProduct::Run(const void* a, const void* b, const float* bias,
                                float* d, void* workspace) {
  constexpr float kOne = 1;
  constexpr float kZero = 0;
  if (options_.has_bias) {
    RETURN_IF_ERROR(
        Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(bias)));
  }
  return Check(device_->gpu().cublas.Matmul(
      device_->cublas(), operation_.get(), &kOne, a, a_.get(), b, b_.get(),
      &kZero, d, d_.get(), d, d_.get(), &algorithm_, workspace,
      workspace_bytes_, device_->stream()));
}

}  // namespace muster
