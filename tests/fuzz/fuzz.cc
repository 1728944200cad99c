#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace muster {

void Want(bool holds, absl::string_view wanted) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: wanted: %.*s\n", static_cast<int>(wanted.size()),
               wanted.data());
  std::abort();
}

uint8_t TakeByte(absl::string_view* input) {
  if (input->empty()) return 0;
  const auto byte = static_cast<uint8_t>(input->front());
  input->remove_prefix(1);
  return byte;
}

InputFile::InputFile(absl::string_view bytes)
    : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
  const ssize_t written = write(descriptor_.get(), bytes.data(), bytes.size());
  Want(written == static_cast<ssize_t>(bytes.size()), "a file in memory");
}

std::string InputFile::path() const {
  return absl::StrCat("/proc/self/fd/", descriptor_.get());
}

}  // namespace muster

// libFuzzer's name for it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  muster::TryInput({reinterpret_cast<const char*>(data), size});
  return 0;
}
