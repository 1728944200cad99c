#include "common/checkpoint/checked_text.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/crc32c.h"

namespace muster {
namespace {

std::string CrcLine(absl::string_view text) {
  return absl::StrFormat("# crc32c of the text above: %08x\n", Crc32c(text));
}

// With its end; all of the text if there is but one.
absl::string_view LastLine(absl::string_view text) {
  if (text.size() < 2) return text;
  const size_t end = text.rfind('\n', text.size() - 2);
  return end == absl::string_view::npos ? text : text.substr(end + 1);
}

}  // namespace

std::string WithCrcLine(absl::string_view text) {
  return absl::StrCat(text, CrcLine(text));
}

bool CrcLineFits(absl::string_view text) {
  const absl::string_view last = LastLine(text);
  return last == CrcLine(text.substr(0, text.size() - last.size()));
}

}  // namespace muster
