#include "worker/input/file/npy_file.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"

namespace muster {
namespace {

// Converted at once, on the stack.
constexpr int64_t kChunkBytes = 16 * 1024;

absl::string_view AsText(const std::vector<uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Converts `count` elements of type T at `src`, in the byte order of this
// machine, which is little-endian on all that we build for.
template <typename T, typename Dst>
void Convert(const uint8_t* src, int64_t count, Dst* dst) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, src + i * sizeof(T), sizeof(T));
    dst[i] = static_cast<Dst>(value);
  }
}

void ConvertBools(const uint8_t* src, int64_t count, float* dst) {
  for (int64_t i = 0; i < count; ++i) dst[i] = src[i] == 0 ? 0.0f : 1.0f;
}

void ConvertBools(const uint8_t* src, int64_t count, int64_t* dst) {
  for (int64_t i = 0; i < count; ++i) dst[i] = src[i] == 0 ? 0 : 1;
}

template <typename Dst>
void ConvertIntegers(NpyType type, const uint8_t* src, int64_t count,
                     Dst* dst) {
  switch (type) {
    case NpyType::kI1:
      return Convert<int8_t>(src, count, dst);
    case NpyType::kI2:
      return Convert<int16_t>(src, count, dst);
    case NpyType::kI4:
      return Convert<int32_t>(src, count, dst);
    case NpyType::kI8:
      return Convert<int64_t>(src, count, dst);
    case NpyType::kU1:
      return Convert<uint8_t>(src, count, dst);
    case NpyType::kU2:
      return Convert<uint16_t>(src, count, dst);
    case NpyType::kU4:
      return Convert<uint32_t>(src, count, dst);
    case NpyType::kU8:
      return Convert<uint64_t>(src, count, dst);
    case NpyType::kB1:
      return ConvertBools(src, count, dst);
    case NpyType::kF4:
    case NpyType::kF8:
      return;
  }
}

void ConvertAll(NpyType type, const uint8_t* src, int64_t count, float* dst) {
  if (type == NpyType::kF4) return Convert<float>(src, count, dst);
  if (type == NpyType::kF8) return Convert<double>(src, count, dst);
  ConvertIntegers(type, src, count, dst);
}

// Above INT64_MAX a uint64 becomes negative, which is refused afterwards.
void ConvertAll(NpyType type, const uint8_t* src, int64_t count, int64_t* dst) {
  ConvertIntegers(type, src, count, dst);
}

template <typename Dst>
absl::Status ReadValues(const FileBytes& values, NpyType type, int64_t first,
                        absl::Span<Dst> dst) {
  uint8_t chunk[kChunkBytes];
  const int64_t bytes = NpyTypeBytes(type);
  const int64_t total = static_cast<int64_t>(dst.size());
  for (int64_t done = 0; done < total;) {
    const int64_t count = std::min(kChunkBytes / bytes, total - done);
    RETURN_IF_ERROR(values.ReadAt((first + done) * bytes,
                                  absl::MakeSpan(chunk, count * bytes)));
    ConvertAll(type, chunk, count, dst.data() + done);
    done += count;
  }
  return absl::OkStatus();
}

absl::StatusOr<NpyHeader> ReadHeader(const FileBytes& bytes, int64_t* end) {
  std::vector<uint8_t> prefix(std::min(bytes.size(), kNpyPrefixBytes));
  RETURN_IF_ERROR(bytes.ReadAt(0, absl::MakeSpan(prefix)));
  ASSIGN_OR_RETURN(const NpyTextPlace place, ParseNpyPrefix(AsText(prefix)));
  *end = place.begin + place.size;
  if (*end > bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file is cut short: its header ends at ", *end,
                     ", the file at ", bytes.size()));
  }
  std::vector<uint8_t> text(place.size);
  RETURN_IF_ERROR(bytes.ReadAt(place.begin, absl::MakeSpan(text)));
  return ParseNpyHeader(AsText(text));
}

absl::Status CheckSize(const NpyHeader& header, int64_t found_bytes) {
  int64_t wanted_bytes = NpyTypeBytes(header.type);
  for (const int64_t dim : header.shape) {
    wanted_bytes = SaturatingProduct(wanted_bytes, dim);
  }
  if (wanted_bytes == found_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(wanted_bytes > found_bytes ? "the file is cut short"
                                              : "the file is too long",
                   ": its header announces ", wanted_bytes, " bytes, (",
                   absl::StrJoin(header.shape, ", "), ") of ",
                   NpyTypeName(header.type), ", found ", found_bytes));
}

int64_t RowValues(const NpyHeader& header) {
  int64_t values = 1;
  for (size_t i = 1; i < header.shape.size(); ++i) values *= header.shape[i];
  return values;
}

}  // namespace

absl::StatusOr<NpyFile> NpyFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(FileBytes bytes, FileBytes::Open(path));
  return FromBytes(std::move(bytes));
}

absl::StatusOr<NpyFile> NpyFile::FromBytes(FileBytes bytes) {
  const std::string context = absl::StrCat("reading '", bytes.path(), "'");
  int64_t begin = 0;
  absl::StatusOr<NpyHeader> header = ReadHeader(bytes, &begin);
  if (!header.ok()) return Annotate(header.status(), context);
  const int64_t size = bytes.size() - begin;
  RETURN_IF_ERROR(Annotate(CheckSize(*header, size), context));
  const int64_t row_values = RowValues(*header);
  return NpyFile(std::move(bytes).Part(begin, size), *std::move(header),
                 row_values);
}

NpyFile::NpyFile(FileBytes values, NpyHeader header, int64_t row_values)
    : values_(std::move(values)),
      header_(std::move(header)),
      row_values_(row_values) {}

absl::Status NpyFile::ReadRows(int64_t first, int64_t count,
                               absl::Span<float> dst) const {
  assert(first >= 0 && count <= num_rows() - first);
  assert(static_cast<int64_t>(dst.size()) == count * row_values_);
  static_cast<void>(count);
  return Annotate(ReadValues(values_, type(), first * row_values_, dst),
                  absl::StrCat("reading '", values_.path(), "'"));
}

absl::Status NpyFile::ReadBytes(int64_t row, absl::Span<uint8_t> dst) const {
  return Annotate(values_.ReadAt(row * row_values_, dst),
                  absl::StrCat("reading '", values_.path(), "'"));
}

absl::Status NpyFile::ReadRows(int64_t first, int64_t count,
                               absl::Span<int64_t> dst) const {
  assert(first >= 0 && count <= num_rows() - first);
  assert(static_cast<int64_t>(dst.size()) == count * row_values_);
  static_cast<void>(count);
  const std::string context = absl::StrCat("reading '", values_.path(), "'");
  if (type() == NpyType::kF4 || type() == NpyType::kF8) {
    return absl::InvalidArgumentError(absl::StrCat(
        context, ": wanted integers, found ", NpyTypeName(type())));
  }
  RETURN_IF_ERROR(
      Annotate(ReadValues(values_, type(), first * row_values_, dst), context));
  const auto negative =
      std::find_if(dst.begin(), dst.end(), [](int64_t v) { return v < 0; });
  if (type() != NpyType::kU8 || negative == dst.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(context, ": wanted integers up to ", INT64_MAX, ", found ",
                   static_cast<uint64_t>(*negative)));
}

}  // namespace muster
