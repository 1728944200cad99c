// With the libraries of the machine that builds --config=cuda; a driver or a
// device is not needed.
#include "worker/backend/cuda/gpu_libraries.h"

#include <dirent.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/backend/cuda/gpu_status.h"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kToolkit[] = "/usr/local/cuda/lib64";

TEST(GpuLibrariesTest, FindsEveryFunction) {
  const auto gpu = LoadGpuFunctions("");
  ASSERT_THAT(gpu, IsOk());
#define MUSTER_EXPECT(member, symbol) EXPECT_TRUE(functions.member) << #symbol;
  {
    const CudaFunctions& functions = (*gpu)->cuda;
    MUSTER_CUDA_FUNCTIONS(MUSTER_EXPECT)
  }
  {
    const CudnnFunctions& functions = (*gpu)->cudnn;
    MUSTER_CUDNN_FUNCTIONS(MUSTER_EXPECT)
  }
  {
    const CublasFunctions& functions = (*gpu)->cublas;
    MUSTER_CUBLAS_FUNCTIONS(MUSTER_EXPECT)
  }
  {
    const NcclFunctions& functions = (*gpu)->nccl;
    MUSTER_NCCL_FUNCTIONS(MUSTER_EXPECT)
  }
#undef MUSTER_EXPECT
  EXPECT_EQ((*gpu)->cudnn.GetVersion() / 10000, CUDNN_MAJOR);
  EXPECT_EQ((*gpu)->cublas.GetVersion() / 10000, CUBLAS_VER_MAJOR);
}

TEST(GpuLibrariesTest, SaysWhyThereIsNoDevice) {
  const auto gpu = LoadGpuFunctions("");
  ASSERT_THAT(gpu, IsOk());
  int count = 0;
  const absl::Status status =
      CheckCuda(**gpu, (*gpu)->cuda.GetDeviceCount(&count),
                [] { return "count the devices"; });
  if (status.ok()) GTEST_SKIP() << count << " devices";
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("count the devices: CUDA says ")));
}

TEST(GpuLibrariesTest, RefusesAFolderThatIsNone) {
  EXPECT_THAT(LoadGpuFunctions("/tmp:/no/such/folder"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("--gpu_library_path"),
                             HasSubstr("'/no/such/folder'"))));
}

class GpuLibrariesFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = absl::StrCat(testing::TempDir(), "/libraries.XXXXXX");
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override {
    DIR* const listing = opendir(folder_.c_str());
    ASSERT_NE(listing, nullptr);
    while (const dirent* entry = readdir(listing)) {
      unlink(PathOf(entry->d_name).c_str());
    }
    closedir(listing);
    EXPECT_EQ(rmdir(folder_.c_str()), 0);
  }

  std::string PathOf(const std::string& name) const {
    return absl::StrCat(folder_, "/", name);
  }
  void Link(const std::string& target, const std::string& name) {
    ASSERT_EQ(symlink(target.c_str(), PathOf(name).c_str()), 0) << name;
  }

  std::string folder_;
};

TEST_F(GpuLibrariesFolderTest, PassesOverABrokenFile) {
  FILE* const file = fopen(PathOf("libcudnn.so.9").c_str(), "w");
  ASSERT_NE(file, nullptr);
  fputs("no library", file);
  fclose(file);
  EXPECT_THAT(LoadGpuFunctions(folder_), IsOk());
}

TEST_F(GpuLibrariesFolderTest, NamesAFunctionThatIsMissing) {
  Link(absl::StrCat(kToolkit, "/libcudnn_graph.so.9"), "libcublasLt.so.13");
  EXPECT_THAT(LoadGpuFunctions(folder_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("cublasLtCreate"),
                             HasSubstr(PathOf("libcublasLt.so.13")))));
}

// The files that this process has mapped, "libcudnn_ops" of them.
std::string Mapped(const std::string& name) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  char line[4096];
  std::string found;
  while (fgets(line, sizeof(line), maps) != nullptr) {
    if (absl::StrContains(line, name)) found = line;
  }
  fclose(maps);
  return found;
}

TEST_F(GpuLibrariesFolderTest, CudnnFindsItsParts) {
  const auto gpu = LoadGpuFunctions(kToolkit);
  ASSERT_THAT(gpu, IsOk());
  // Loads them before it looks for a driver.
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = (*gpu)->cudnn.Create(&handle);
  if (status == CUDNN_STATUS_SUCCESS) (*gpu)->cudnn.Destroy(handle);
  EXPECT_NE(status, CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED);
  EXPECT_NE(Mapped("libcudnn_graph.so.9"), "");
}

}  // namespace
}  // namespace muster
