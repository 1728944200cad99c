#ifndef WORKER_BACKEND_CUDA_DYNAMIC_LIBRARY_H_
#define WORKER_BACKEND_CUDA_DYNAMIC_LIBRARY_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// A shared library that is looked for when the program runs. It is never
// closed: threads and exit handlers that it has started go on in its code. A
// value.
class DynamicLibrary {
 public:
  // Opens `name` ("libcudnn.so.9") from the first of `folders` whose file of
  // that name loads, else from where the system's loader looks, else from
  // `last_folder`. Errors: NotFound with all these places; FailedPrecondition
  // with all reasons if a file is there, and none loads.
  static absl::StatusOr<DynamicLibrary> Open(
      const std::string& name, const std::vector<std::string>& folders,
      const std::string& last_folder);

  // Where it was opened: "/usr/lib/x86_64-linux-gnu".
  std::string folder() const;

  // Opens `name`, which this library would open by itself later and not well do
  // without, from this library's folder, else from where the system's loader
  // looks. Errors: NotFound; FailedPrecondition if there is one in the folder
  // that does not load.
  absl::StatusOr<DynamicLibrary> OpenPart(const std::string& name) const;

  // The address of `symbol`. Errors: FailedPrecondition if the library, of
  // another version then, has none.
  absl::StatusOr<void*> Find(const char* symbol) const;

 private:
  DynamicLibrary(std::string path, void* handle)
      : path_(std::move(path)), handle_(handle) {}

  static absl::StatusOr<DynamicLibrary> OpenFile(const std::string& path);

  std::string path_;
  void* handle_;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_DYNAMIC_LIBRARY_H_
