#include "worker/input/file/cifar_file.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

constexpr int64_t kMaxLabelBytes = 2;

int64_t LabelBytes(CifarKind kind) {
  return kind == CifarKind::kCifar10 ? 1 : kMaxLabelBytes;
}

int64_t RowBytes(CifarKind kind) {
  return LabelBytes(kind) + CifarFile::kPixelBytes;
}

void CopyChannelsLast(const uint8_t* src, absl::Span<uint8_t> dst) {
  constexpr int64_t kPixels = CifarFile::kSide * CifarFile::kSide;
  for (int64_t pixel = 0; pixel < kPixels; ++pixel) {
    for (int64_t channel = 0; channel < CifarFile::kChannels; ++channel) {
      dst[pixel * CifarFile::kChannels + channel] =
          src[channel * kPixels + pixel];
    }
  }
}

}  // namespace

absl::StatusOr<CifarFile> CifarFile::Open(const std::string& path,
                                          CifarKind kind) {
  ASSIGN_OR_RETURN(FileBytes bytes, FileBytes::Open(path));
  const int64_t size = bytes.size();
  if (size > 0 && size % RowBytes(kind) == 0) {
    return CifarFile(std::move(bytes), kind);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "reading '", path, "': wanted rows of ", RowBytes(kind), " bytes (",
      kind == CifarKind::kCifar10 ? "CIFAR-10" : "CIFAR-100", "), found ", size,
      " bytes: ", size / RowBytes(kind), " rows and ", size % RowBytes(kind),
      " bytes"));
}

CifarFile::CifarFile(FileBytes bytes, CifarKind kind)
    : bytes_(std::move(bytes)), kind_(kind) {}

int64_t CifarFile::num_rows() const { return bytes_.size() / RowBytes(kind_); }

absl::StatusOr<int32_t> CifarFile::Read(int64_t row, PixelOrder order,
                                        absl::Span<uint8_t> pixels) const {
  assert(static_cast<int64_t>(pixels.size()) == kPixelBytes);
  std::array<uint8_t, kMaxLabelBytes + kPixelBytes> bytes;
  const int64_t row_bytes = RowBytes(kind_);
  const absl::Status status =
      bytes_.ReadAt(row * row_bytes, absl::MakeSpan(bytes.data(), row_bytes));
  const auto context = [&] {
    return absl::StrCat("reading row ", row, " of '", bytes_.path(), "'");
  };
  if (!status.ok()) return Annotate(status, context());
  const int32_t label = bytes[LabelBytes(kind_) - 1];
  if (label >= num_classes()) {
    return absl::InvalidArgumentError(
        absl::StrCat(context(), ": wanted a label from 0 to ",
                     num_classes() - 1, ", found ", label));
  }
  const uint8_t* src = bytes.data() + LabelBytes(kind_);
  if (order == PixelOrder::kChannelsLast) {
    CopyChannelsLast(src, pixels);
  } else {
    std::copy_n(src, kPixelBytes, pixels.begin());
  }
  return label;
}

}  // namespace muster
