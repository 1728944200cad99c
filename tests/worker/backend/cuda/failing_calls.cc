#include "tests/worker/backend/cuda/failing_calls.h"

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "tests/testing/allocation_pause.h"

namespace muster {
namespace {

// The result of a call that fails. Texts and version numbers do not fail.
template <typename Result>
constexpr bool kCanFail = std::is_enum_v<Result>;

template <typename Result>
Result Failure();
template <>
cudaError_t Failure() {
  return cudaErrorUnknown;
}
template <>
cudnnStatus_t Failure() {
  return CUDNN_STATUS_EXECUTION_FAILED;
}
template <>
cublasStatus_t Failure() {
  return CUBLAS_STATUS_EXECUTION_FAILED;
}
template <>
ncclResult_t Failure() {
  return ncclInternalError;
}

bool Makes(absl::string_view name) {
  for (const absl::string_view part :
       {"Create", "Init", "Instantiate", "Malloc", "Register"}) {
    if (absl::StrContains(name, part)) return true;
  }
  return false;
}

}  // namespace

template <typename Result, typename... Arguments>
void FailingCalls::WrapOne(std::function<Result(Arguments...)>* function,
                           const char* name) {
  if (*function == nullptr) return;
  if constexpr (kCanFail<Result>) {
    *function = [this, call = *function, name](Arguments... arguments) {
      const AllocationPause pause;
      if (Fails(name)) return Failure<Result>();
      return call(arguments...);
    };
  }
}

GpuFunctions FailingCalls::Wrap(GpuFunctions functions) {
#define MUSTER_WRAP(member, symbol) \
  WrapOne(&functions.MUSTER_LIBRARY.member, #symbol);
#define MUSTER_LIBRARY cuda
  MUSTER_CUDA_FUNCTIONS(MUSTER_WRAP)
#undef MUSTER_LIBRARY
#define MUSTER_LIBRARY cudnn
  MUSTER_CUDNN_FUNCTIONS(MUSTER_WRAP)
#undef MUSTER_LIBRARY
#define MUSTER_LIBRARY cublas
  MUSTER_CUBLAS_FUNCTIONS(MUSTER_WRAP)
#undef MUSTER_LIBRARY
#define MUSTER_LIBRARY nccl
  MUSTER_NCCL_FUNCTIONS(MUSTER_WRAP)
#undef MUSTER_LIBRARY
#undef MUSTER_WRAP
  return functions;
}

void FailingCalls::Reset(int64_t fail_at) {
  const absl::MutexLock lock(&mu_);
  calls_ = 0;
  fail_at_ = fail_at;
  failed_.clear();
}

int64_t FailingCalls::calls() const {
  const absl::MutexLock lock(&mu_);
  return calls_;
}

std::string FailingCalls::failed() const {
  const absl::MutexLock lock(&mu_);
  return failed_;
}

absl::flat_hash_map<std::string, int64_t> FailingCalls::counts() const {
  const absl::MutexLock lock(&mu_);
  return counts_;
}

int64_t FailingCalls::calls_that_make() const {
  const absl::MutexLock lock(&mu_);
  int64_t calls = 0;
  for (const auto& [name, count] : counts_) {
    if (Makes(name)) calls += count;
  }
  return calls;
}

bool FailingCalls::Fails(const char* name) {
  const absl::MutexLock lock(&mu_);
  ++counts_[name];
  if (++calls_ != fail_at_) return false;
  failed_ = name;
  return true;
}

}  // namespace muster
