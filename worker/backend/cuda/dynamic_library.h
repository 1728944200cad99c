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
  // Opens `name` ("libcudnn.so.9") from the first of `folders` where it loads,
  // else from where the system's loader looks, else from `last_folder`. A file
  // that the loader refuses, for what it needs is missing, say, is passed over.
  // Errors: NotFound with all these places; FailedPrecondition, with the
  // loader's reason for each, if there were files that it refuses.
  static absl::StatusOr<DynamicLibrary> Open(
      const std::string& name, const std::vector<std::string>& folders,
      const std::string& last_folder);

  // The address of `symbol`. Errors: FailedPrecondition if the library, of
  // another version then, has none.
  absl::StatusOr<void*> Find(const char* symbol) const;

 private:
  DynamicLibrary(std::string path, void* handle)
      : path_(std::move(path)), handle_(handle) {}

  std::string path_;
  void* handle_;
};

}  // namespace muster

#endif  // WORKER_BACKEND_CUDA_DYNAMIC_LIBRARY_H_
