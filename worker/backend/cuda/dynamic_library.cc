#include "worker/backend/cuda/dynamic_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

// All symbols at once: what is missing shows here and not in the first step.
constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;

// Null if `path` is no file, or none that the loader takes; its reason is then
// added to `refused`.
void* OpenFile(const std::string& path, std::vector<std::string>* refused) {
  if (access(path.c_str(), F_OK) != 0) return nullptr;
  void* const handle = dlopen(path.c_str(), kFlags);
  if (handle == nullptr) {
    refused->push_back(absl::StrCat(path, ": ", dlerror()));
  }
  return handle;
}

}  // namespace

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(
    const std::string& name, const std::vector<std::string>& folders,
    const std::string& last_folder) {
  std::vector<std::string> refused;
  for (const std::string& folder : folders) {
    const std::string path = absl::StrCat(folder, "/", name);
    void* const handle = OpenFile(path, &refused);
    if (handle != nullptr) return DynamicLibrary(path, handle);
  }
  if (void* const handle = dlopen(name.c_str(), kFlags); handle != nullptr) {
    return DynamicLibrary(name, handle);
  }
  const std::string reason = dlerror();
  const std::string path = absl::StrCat(last_folder, "/", name);
  if (void* const handle = OpenFile(path, &refused); handle != nullptr) {
    return DynamicLibrary(path, handle);
  }
  if (refused.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "find ", name, ": not in [", absl::StrJoin(folders, ", "),
        "], not where the loader looks (", reason, "), not in ", last_folder));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("load ", name, ": ", absl::StrJoin(refused, "; "),
                   "; where the loader looks: ", reason,
                   "; replace the file, or look in another folder"));
}

absl::StatusOr<void*> DynamicLibrary::Find(const char* symbol) const {
  void* const address = dlsym(handle_, symbol);
  if (address == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("find ", symbol, " in ", path_,
                     ": this version of the library has none"));
  }
  return address;
}

}  // namespace muster
