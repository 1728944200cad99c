#ifndef TESTS_FUZZ_FUZZ_H_
#define TESTS_FUZZ_FUZZ_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/file_descriptor.h"

namespace muster {

// Gives `input` to the code that reads such bytes from outside. Each target
// defines it. It keeps nothing for the next call: an input that fails does so
// by itself.
void TryInput(absl::string_view input);

// Ends the process, and the input counts as one that fails, unless `holds`.
void Want(bool holds, absl::string_view wanted);

// The value, which must be there. `wanted` as Want's.
template <typename T>
const T& Wanted(const absl::StatusOr<T>& value, absl::string_view wanted) {
  Want(value.ok(), absl::StrCat(wanted, ": ", value.status().ToString()));
  return *value;
}

// Takes the first byte away; 0 if there is none.
uint8_t TakeByte(absl::string_view* input);

inline absl::Span<const uint8_t> AsBytes(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A regular file of these bytes, in memory, while it lives.
class InputFile {
 public:
  explicit InputFile(absl::string_view bytes);
  std::string path() const;

 private:
  const FileDescriptor descriptor_;
};

}  // namespace muster

#endif  // TESTS_FUZZ_FUZZ_H_
