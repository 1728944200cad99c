#ifndef WORKER_INPUT_FILE_ZIP_DIRECTORY_H_
#define WORKER_INPUT_FILE_ZIP_DIRECTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/input/file/file_bytes.h"

namespace muster {

// A member of a zip file, as its central directory has it.
struct ZipEntry {
  std::string name;
  uint16_t flags = 0;
  // 0 is stored, 8 deflated.
  uint16_t method = 0;
  uint32_t crc32 = 0;
  int64_t compressed_bytes = 0;
  int64_t bytes = 0;
  // The place of the local header in the file.
  int64_t header_offset = 0;
};

// Reads the central directory of a zip file, also one of zip64 (members or
// files of 4 GiB and more). Nothing in it is believed before it was compared
// with the size of the file; whether members lie in it, their reader checks.
// Errors, without the path: InvalidArgument (not a zip file, cut short,
// damaged, a directory of more than 16 MiB), FileBytes::ReadAt's.
absl::StatusOr<std::vector<ZipEntry>> ReadZipDirectory(const FileBytes& file);

}  // namespace muster

#endif  // WORKER_INPUT_FILE_ZIP_DIRECTORY_H_
