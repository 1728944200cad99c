#include "worker/input/data_set/idx_file.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"
#include "worker/input/file/byte_source.h"

namespace muster {
namespace {

// Above any set of this format, and far from overflow.
constexpr int64_t kMaxValueBytes = int64_t{1} << 33;

// Magic numbers of bytes are 2048 and the rank.
constexpr uint32_t kBytesMagic = 2048;
constexpr uint32_t kMaxRank = 4;

const char* NameOf(IdxKind kind) {
  return kind == IdxKind::kImages ? "images" : "labels";
}

// Reads exactly `size` bytes.
absl::Status ReadAll(ByteSource& source, uint8_t* dst, size_t size,
                     absl::string_view what) {
  ASSIGN_OR_RETURN(const size_t got, source.Read(dst, size));
  if (got == size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the file is cut short: wanted ", size, " bytes of ", what,
                   ", found ", got));
}

absl::StatusOr<uint32_t> ReadBigEndian(ByteSource& source) {
  uint8_t b[4];
  RETURN_IF_ERROR(ReadAll(source, b, sizeof(b), "header"));
  return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 |
         uint32_t{b[3]};
}

absl::Status CheckMagic(uint32_t magic, IdxKind kind) {
  const uint32_t wanted = static_cast<uint32_t>(kind);
  if (magic == wanted) return absl::OkStatus();
  if (kind == IdxKind::kImages && magic > kBytesMagic + 1 &&
      magic <= kBytesMagic + kMaxRank) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("wanted magic number ", wanted,
                                                 " (", NameOf(kind),
                                                 " of bytes), found ", magic));
}

// The product of positive dimensions, each below 2^32.
absl::StatusOr<int64_t> CountValues(absl::Span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) {
    if (dim == 0 || dim > kMaxValueBytes / count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "wanted 1 to ", kMaxValueBytes, " values, found the shape [",
          absl::StrJoin(shape, ", "), "]"));
    }
    count *= dim;
  }
  return count;
}

// Compares what the header announces with what the file can hold.
absl::Status CheckSize(const ByteSource& source, int64_t header_bytes,
                       int64_t value_bytes) {
  const int64_t wanted = header_bytes + value_bytes;
  if (wanted <= source.max_bytes()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the file is cut short: its header announces ", wanted,
                   " bytes, and this ", source.format(),
                   " file can hold at most ", source.max_bytes()));
}

absl::Status CheckEnd(ByteSource& source, int64_t wanted) {
  uint8_t extra;
  ASSIGN_OR_RETURN(const size_t got, source.Read(&extra, 1));
  if (got == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the file is too long: wanted the ", wanted,
                   " bytes that its header announces, found more"));
}

absl::StatusOr<IdxFile> ReadFrom(ByteSource& source, IdxKind kind) {
  ASSIGN_OR_RETURN(const uint32_t magic, ReadBigEndian(source));
  RETURN_IF_ERROR(CheckMagic(magic, kind));
  const int rank = static_cast<int>(magic - kBytesMagic);
  IdxFile file;
  for (int i = 0; i < rank; ++i) {
    ASSIGN_OR_RETURN(const uint32_t dim, ReadBigEndian(source));
    file.shape.push_back(dim);
  }
  ASSIGN_OR_RETURN(const int64_t count, CountValues(file.shape));
  const int64_t header_bytes = 4 + 4 * rank;
  RETURN_IF_ERROR(CheckSize(source, header_bytes, count));
  RETURN_IF_ERROR(CheckMemory(NameOf(kind), count, OwnMemoryLimit()));
  file.values.resize(count);
  RETURN_IF_ERROR(ReadAll(source, file.values.data(), count, NameOf(kind)));
  RETURN_IF_ERROR(CheckEnd(source, header_bytes + count));
  return file;
}

}  // namespace

absl::StatusOr<IdxFile> ReadIdxFile(const std::string& path, IdxKind kind) {
  const std::string context =
      absl::StrCat("reading ", NameOf(kind), " from '", path, "'");
  absl::StatusOr<std::unique_ptr<ByteSource>> source = ByteSource::Open(path);
  if (!source.ok()) return Annotate(source.status(), context);
  absl::StatusOr<IdxFile> file = ReadFrom(**source, kind);
  if (!file.ok()) return Annotate(file.status(), context);
  return file;
}

}  // namespace muster
