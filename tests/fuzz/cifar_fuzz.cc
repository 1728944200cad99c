// Files of CIFAR-10 and CIFAR-100, plain and gzip.
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "worker/input/file/cifar_file.h"

namespace muster {

void TryInput(absl::string_view input) {
  const InputFile file(input);
  std::vector<uint8_t> pixels(CifarFile::kPixelBytes);
  for (const CifarKind kind : {CifarKind::kCifar10, CifarKind::kCifar100}) {
    const auto cifar = CifarFile::Open(file.path(), kind);
    if (!cifar.ok()) continue;
    for (int64_t row = 0; row < cifar->num_rows(); ++row) {
      const auto label =
          cifar->Read(row, PixelOrder::kChannelsLast, absl::MakeSpan(pixels));
      if (!label.ok()) continue;
      Want(*label >= 0 && *label < cifar->num_classes(), "a label in range");
      Want(cifar->Read(row, PixelOrder::kChannelsFirst, absl::MakeSpan(pixels))
               .ok(),
           "the row in either order");
    }
  }
}

}  // namespace muster
