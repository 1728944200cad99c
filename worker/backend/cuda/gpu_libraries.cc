#include "worker/backend/cuda/gpu_libraries.h"

#include <sys/stat.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "worker/backend/cuda/dynamic_library.h"

namespace muster {
namespace {

constexpr char kToolkitFolder[] = "/usr/local/cuda/lib64";
constexpr char kCublas[] = "libcublasLt.so.13";
constexpr char kCudnn[] = "libcudnn.so.9";
// Those that convolutions want. libcudnn.so.9 itself is a shell that opens them
// at the first call, and ends the process, or fails step by step, where one is
// missing.
constexpr const char* kCudnnParts[] = {
    "libcudnn_graph.so.9",
    "libcudnn_ops.so.9",
    "libcudnn_cnn.so.9",
    "libcudnn_heuristic.so.9",
    "libcudnn_engines_precompiled.so.9",
};
constexpr char kNccl[] = "libnccl.so.2";

absl::StatusOr<std::vector<std::string>> FoldersOf(
    absl::string_view library_path) {
  std::vector<std::string> folders =
      absl::StrSplit(library_path, ':', absl::SkipEmpty());
  for (const std::string& folder : folders) {
    struct stat found;
    if (stat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--gpu_library_path: wanted folders, found '", folder, "'"));
    }
  }
  return folders;
}

// Without it there is no device to use, as without a driver.
absl::StatusOr<DynamicLibrary> OpenNeeded(
    const char* name, const std::vector<std::string>& folders) {
  auto library = DynamicLibrary::Open(name, folders, kToolkitFolder);
  if (!absl::IsNotFound(library.status())) return library;
  return absl::UnavailableError(
      absl::StrCat(library.status().message(),
                   "; install it, or name its folder in --gpu_library_path"));
}

// Whether all of cuDNN is there. The parts stay open, and are then what it
// finds.
absl::Status OpenCudnnParts(const DynamicLibrary& cudnn) {
  for (const char* part : kCudnnParts) {
    const absl::Status status = cudnn.OpenPart(part).status();
    if (status.ok()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the cuDNN in ", cudnn.folder(), " is not whole: ", status.message(),
        "; install all of it"));
  }
  return absl::OkStatus();
}

template <typename Signature>
absl::Status Find(const DynamicLibrary& library, const char* symbol,
                  std::function<Signature>* function) {
  ASSIGN_OR_RETURN(void* const address, library.Find(symbol));
  *function = reinterpret_cast<Signature*>(address);
  return absl::OkStatus();
}

CudaFunctions LinkedRuntime() {
  CudaFunctions cuda;
#define MUSTER_SET(member, symbol) cuda.member = symbol;
  MUSTER_CUDA_FUNCTIONS(MUSTER_SET)
#undef MUSTER_SET
  return cuda;
}

#define MUSTER_FIND(member, symbol) \
  RETURN_IF_ERROR(Find(library, #symbol, &functions->member));

absl::Status FindAll(const DynamicLibrary& library,
                     CublasFunctions* functions) {
  MUSTER_CUBLAS_FUNCTIONS(MUSTER_FIND)
  return absl::OkStatus();
}

absl::Status FindAll(const DynamicLibrary& library, CudnnFunctions* functions) {
  MUSTER_CUDNN_FUNCTIONS(MUSTER_FIND)
  return absl::OkStatus();
}

absl::Status FindAll(const DynamicLibrary& library, NcclFunctions* functions) {
  MUSTER_NCCL_FUNCTIONS(MUSTER_FIND)
  return absl::OkStatus();
}

#undef MUSTER_FIND

}  // namespace

absl::StatusOr<std::unique_ptr<const GpuFunctions>> LoadGpuFunctions(
    absl::string_view library_path) {
  ASSIGN_OR_RETURN(const auto folders, FoldersOf(library_path));
  auto gpu = std::make_unique<GpuFunctions>();
  gpu->cuda = LinkedRuntime();
  ASSIGN_OR_RETURN(const auto cublas, OpenNeeded(kCublas, folders));
  RETURN_IF_ERROR(FindAll(cublas, &gpu->cublas));
  ASSIGN_OR_RETURN(const auto cudnn, OpenNeeded(kCudnn, folders));
  RETURN_IF_ERROR(OpenCudnnParts(cudnn));
  RETURN_IF_ERROR(FindAll(cudnn, &gpu->cudnn));
  const auto nccl = DynamicLibrary::Open(kNccl, folders, kToolkitFolder);
  if (absl::IsNotFound(nccl.status())) return gpu;
  RETURN_IF_ERROR(nccl.status());
  RETURN_IF_ERROR(FindAll(*nccl, &gpu->nccl));
  return gpu;
}

}  // namespace muster
