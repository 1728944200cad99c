#include "worker/client/joined_pieces.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

absl::Status CheckPages(absl::Span<const TensorView> pieces, int64_t page) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool begins_at_page =
        reinterpret_cast<uintptr_t>(pieces[i].data) % page == 0;
    const bool is_whole =
        i + 1 == pieces.size() || pieces[i].size_bytes % page == 0;
    if (begins_at_page && is_whole && pieces[i].size_bytes > 0) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "piece ", i, " of ", pieces.size(), " has ", pieces[i].size_bytes,
        " bytes, which are not pages of ", page));
  }
  return absl::OkStatus();
}

// Maps the piece's pages, which stay where they are, at `at`, too.
absl::Status MapAgain(const TensorView& piece, int64_t page, char* at) {
  const int64_t size_bytes = (piece.size_bytes + page - 1) / page * page;
  // An old size of 0 leaves a shared mapping as it is (mremap(2)).
  void* const mapped = mremap(const_cast<char*>(piece.data), 0, size_bytes,
                              MREMAP_MAYMOVE | MREMAP_FIXED, at);
  if (mapped != MAP_FAILED) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("a piece of ", piece.size_bytes,
                   " bytes cannot be mapped twice: ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const char>> JoinPieces(
    absl::Span<const TensorView> pieces) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  RETURN_IF_ERROR(CheckPages(pieces, page));
  int64_t total = 0;
  for (const TensorView& piece : pieces) total += piece.size_bytes;
  total = (total + page - 1) / page * page;
  void* const room = mmap(nullptr, total, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "addresses for ", total, " bytes: ", std::strerror(errno)));
  }
  const std::shared_ptr<char> joined(
      static_cast<char*>(room), [total](char* data) { munmap(data, total); });
  char* at = joined.get();
  for (const TensorView& piece : pieces) {
    RETURN_IF_ERROR(MapAgain(piece, page, at));
    at += piece.size_bytes;
  }
  return std::shared_ptr<const char>(joined);
}

}  // namespace muster
