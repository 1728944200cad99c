#include "worker/backend/cuda/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

// All symbols at once: what is missing shows here and not in the first step.
constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;

bool IsThere(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

}  // namespace

absl::StatusOr<DynamicLibrary> DynamicLibrary::OpenFile(
    const std::string& path) {
  void* const handle = dlopen(path.c_str(), kFlags);
  if (handle == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("load ", path, ": ", dlerror()));
  }
  return DynamicLibrary(path, handle);
}

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(
    const std::string& name, const std::vector<std::string>& folders,
    const std::string& last_folder) {
  std::vector<std::string> refused;
  const auto open_in =
      [&](const std::string& folder) -> std::optional<DynamicLibrary> {
    const std::string path = absl::StrCat(folder, "/", name);
    if (!IsThere(path)) return std::nullopt;
    auto library = OpenFile(path);
    if (library.ok()) return *std::move(library);
    refused.push_back(std::string(library.status().message()));
    return std::nullopt;
  };
  for (const std::string& folder : folders) {
    if (auto library = open_in(folder)) return *std::move(library);
  }
  auto by_loader = OpenFile(name);
  if (by_loader.ok()) return by_loader;
  if (auto library = open_in(last_folder)) return *std::move(library);
  const std::string places = absl::StrCat(
      "[", absl::StrJoin(folders, ", "), "], where the loader looks (",
      by_loader.status().message(), "), ", last_folder);
  if (refused.empty()) {
    return absl::NotFoundError(
        absl::StrCat("find ", name, ": in none of ", places));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("open ", name, " from one of ", places, ": ",
                   absl::StrJoin(refused, "; "),
                   "; replace the file, or look in another folder"));
}

std::string DynamicLibrary::folder() const {
  std::string path = path_;
  link_map* loaded = nullptr;
  if (!absl::StrContains(path, '/') &&
      dlinfo(handle_, RTLD_DI_LINKMAP, &loaded) == 0) {
    path = loaded->l_name;
  }
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

absl::StatusOr<DynamicLibrary> DynamicLibrary::OpenPart(
    const std::string& name) const {
  const std::string beside = absl::StrCat(folder(), "/", name);
  // One from elsewhere may be of another version.
  if (IsThere(beside)) return OpenFile(beside);
  auto by_loader = OpenFile(name);
  if (by_loader.ok()) return by_loader;
  return absl::NotFoundError(absl::StrCat("find ", name, ": not in ", folder(),
                                          ", not where the loader looks (",
                                          by_loader.status().message(), ")"));
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
