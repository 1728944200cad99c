#ifndef WORKER_INPUT_FILE_NPZ_MEMBER_H_
#define WORKER_INPUT_FILE_NPZ_MEMBER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/input/file/npy_file.h"

namespace muster {

// The names of the arrays in an npz file, as NumPy gives them: without ".npy".
// Errors, with the path: FileBytes::Open's, ReadZipDirectory's.
absl::StatusOr<std::vector<std::string>> ListNpz(const std::string& path);

// Opens the array `name` of an npz file. One that is stored (numpy.savez) is
// read where it lies, and its checksum is not looked at; one that is deflated
// (numpy.savez_compressed) is inflated into memory and compared with it.
// Errors, with path and name: ListNpz's, NpyFile's, NotFound (no such array:
// those that there are), DataLoss (a wrong checksum), InvalidArgument
// (encrypted, compressed in another way, cut short, damaged, more than there
// is memory for).
absl::StatusOr<NpyFile> OpenNpzMember(const std::string& path,
                                      absl::string_view name);

}  // namespace muster

#endif  // WORKER_INPUT_FILE_NPZ_MEMBER_H_
