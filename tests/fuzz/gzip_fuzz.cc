// Files that may be gzip, as a stream and in memory.
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "worker/input/file/byte_source.h"
#include "worker/input/file/file_bytes.h"

namespace muster {
namespace {

constexpr int64_t kMostInflated = 1 << 16;

// All bytes, read `chunk` at a time.
absl::StatusOr<std::string> ReadAll(const std::string& path, size_t chunk) {
  const auto source = ByteSource::Open(path, kMostInflated);
  if (!source.ok()) return source.status();
  std::string all;
  std::vector<uint8_t> buffer(chunk);
  while (true) {
    const auto got = (*source)->Read(buffer.data(), chunk);
    if (!got.ok()) return got.status();
    all.append(buffer.begin(), buffer.begin() + *got);
    if (*got < chunk) break;
  }
  Want(static_cast<int64_t>(all.size()) <= (*source)->max_bytes(),
       "no more than max_bytes()");
  return all;
}

}  // namespace

void TryInput(absl::string_view input) {
  const size_t chunk = TakeByte(&input) + size_t{1};
  const InputFile file(input);
  const auto all = ReadAll(file.path(), chunk);
  const auto bytes = FileBytes::Open(file.path(), kMostInflated);
  Want(all.ok() == bytes.ok(), "the same outcome of a stream and of memory");
  if (!all.ok()) return;
  Want(static_cast<int64_t>(all->size()) == bytes->size(), "as many bytes");
  std::string in_memory(all->size(), '\0');
  const auto to = reinterpret_cast<uint8_t*>(in_memory.data());
  Want(bytes->ReadAt(0, {to, in_memory.size()}).ok() && in_memory == *all,
       "the same bytes");
  Want(!bytes->ReadAt(1, {to, in_memory.size()}).ok(),
       "an error beyond the end");
}

}  // namespace muster
