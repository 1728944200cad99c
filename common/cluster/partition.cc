#include "common/cluster/partition.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/blocks.h"
#include "common/tensor/dtype.h"

namespace muster {
namespace {

constexpr int64_t kBlockBytes = kBlockElements * sizeof(float);

// A tensor of so many one-block pieces of float32 has 16 GiB.
constexpr int64_t kMaxPieces = 65536;

absl::Status CheckAtLeast(absl::string_view field, int64_t value,
                          int64_t least) {
  if (value >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "partition.", field, " must be at least ", least, ", found ", value));
}

// A tensor before it is cut.
struct Uncut {
  int64_t elements = 0;
  int64_t bytes = 0;
  int64_t block_bytes = 0;

  int64_t blocks() const { return NumBlocks(elements); }
};

absl::StatusOr<Uncut> Measure(const TensorDef& tensor) {
  Uncut uncut;
  ASSIGN_OR_RETURN(uncut.bytes, TensorBytes(tensor));
  const auto element_bytes = static_cast<int64_t>(SizeOf(tensor.dtype()));
  uncut.elements = uncut.bytes / element_bytes;
  uncut.block_bytes = kBlockElements * element_bytes;
  return uncut;
}

int64_t CeilOf(int64_t dividend, int64_t divisor) {
  return (dividend - 1) / divisor + 1;
}

// How many pieces the tensor is cut into.
int64_t NumPieces(const Uncut& tensor, const PartitionSpec& spec, int num_ps) {
  const int64_t blocks = std::max<int64_t>(tensor.blocks(), 1);
  switch (spec.kind_case()) {
    case PartitionSpec::kNone:
      return 1;
    case PartitionSpec::kFixed:
      return std::min<int64_t>(spec.fixed().parts(), blocks);
    case PartitionSpec::kMaxBytes:
      return CeilOf(
          blocks,
          std::max<int64_t>(spec.max_bytes().bytes() / tensor.block_bytes, 1));
    case PartitionSpec::kMinMax: {
      const int64_t least =
          CeilOf(spec.min_max().min_bytes(), tensor.block_bytes);
      const int64_t whole_blocks = tensor.elements / kBlockElements;
      return std::clamp<int64_t>(whole_blocks / least, 1,
                                 spec.min_max().max_parts());
    }
    default:  // auto
      return std::min<int64_t>(num_ps, blocks);
  }
}

// Cuts tensors one after another, and knows whose turn it is.
class Cutter {
 public:
  explicit Cutter(int num_ps)
      : bytes_(static_cast<size_t>(num_ps), 0.0), order_(bytes_.size()) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  // Turns go from ps task to ps task. The last runs have a block more, so that
  // the tensor's end, which may be a shorter one, is not in the shortest.
  void CutInTurn(int tensor, const Uncut& uncut, int64_t runs) {
    const int64_t longer = uncut.blocks() % runs;
    for (int64_t run = 0; run < runs; ++run) {
      Add(tensor, uncut, uncut.blocks() / runs + (run >= runs - longer ? 1 : 0),
          next_);
      next_ = Next(next_);
    }
  }

  // Turns follow the bytes.
  void CutEvenly(int tensor, const Uncut& uncut, int64_t runs) {
    if (runs == 1) {
      const double least = *std::min_element(bytes_.begin(), bytes_.end());
      const double much = least + 2.0 * static_cast<double>(uncut.block_bytes);
      while (bytes_[next_] >= much) next_ = Next(next_);
      Add(tensor, uncut, uncut.blocks(), next_);
      next_ = Next(next_);
      return;
    }
    std::sort(order_.begin(), order_.end(), [this](int a, int b) {
      return bytes_[a] != bytes_[b] ? bytes_[a] < bytes_[b] : a < b;
    });
    const int64_t longer = uncut.blocks() % runs;
    for (int64_t run = 0; run < runs; ++run) {
      Add(tensor, uncut, uncut.blocks() / runs + (run < longer ? 1 : 0),
          order_[run]);
    }
  }

  std::vector<Piece> TakePieces() { return std::move(pieces_); }

 private:
  int Next(int ps) const { return (ps + 1) % static_cast<int>(bytes_.size()); }

  // Adds a run that begins where the one before of the tensor ends.
  void Add(int tensor, const Uncut& uncut, int64_t blocks, int turn) {
    Piece piece;
    piece.tensor = tensor;
    if (!pieces_.empty() && pieces_.back().tensor == tensor) {
      piece.begin = pieces_.back().begin + pieces_.back().length;
    }
    piece.length =
        std::min(blocks * kBlockElements, uncut.elements - piece.begin);
    piece.bytes = piece.length * (uncut.block_bytes / kBlockElements);
    piece.turn = turn;
    bytes_[turn] += static_cast<double>(piece.bytes);
    pieces_.push_back(piece);
  }

  // By ps task; as double: the sum of many allowed sizes may not fit in
  // int64_t.
  std::vector<double> bytes_;
  // All ps tasks; sorted anew for each tensor that is cut.
  std::vector<int> order_;
  int next_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace

absl::Status CheckPartition(const PartitionSpec& spec) {
  switch (spec.kind_case()) {
    case PartitionSpec::kFixed:
      return CheckAtLeast("fixed.parts", spec.fixed().parts(), 1);
    case PartitionSpec::kMaxBytes:
      return CheckAtLeast("max_bytes.bytes", spec.max_bytes().bytes(),
                          kBlockBytes);
    case PartitionSpec::kMinMax:
      RETURN_IF_ERROR(
          CheckAtLeast("min_max.max_parts", spec.min_max().max_parts(), 1));
      return CheckAtLeast("min_max.min_bytes", spec.min_max().min_bytes(), 1);
    default:
      return absl::OkStatus();
  }
}

absl::Status CheckPartsFit(absl::Span<const TensorDef> tensors,
                           const PartitionSpec& spec) {
  if (!spec.has_fixed() || tensors.empty()) return absl::OkStatus();
  int64_t most = -1;
  const std::string* largest = nullptr;
  for (const TensorDef& tensor : tensors) {
    ASSIGN_OR_RETURN(const Uncut uncut, Measure(tensor));
    if (uncut.blocks() <= most) continue;
    most = uncut.blocks();
    largest = &tensor.name();
  }
  // A tensor without elements is in one piece, too.
  most = std::max<int64_t>(most, 1);
  if (spec.fixed().parts() <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "placement.partition.fixed.parts is ", spec.fixed().parts(),
      "; wanted at most ", most, ", the blocks of ", kBlockElements,
      " elements of the largest parameter, '", *largest, "'"));
}

absl::StatusOr<std::vector<Piece>> CutTensors(
    absl::Span<const TensorDef> tensors, const PartitionSpec& spec,
    int num_ps) {
  const bool in_turn = spec.kind_case() != PartitionSpec::kAuto &&
                       spec.kind_case() != PartitionSpec::KIND_NOT_SET;
  Cutter cutter(num_ps);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int tensor = static_cast<int>(i);
    ASSIGN_OR_RETURN(const Uncut uncut, Measure(tensors[i]));
    const int64_t pieces = NumPieces(uncut, spec, num_ps);
    if (pieces > kMaxPieces) {
      return absl::InvalidArgumentError(absl::StrCat(
          "placement.partition cuts '", tensors[i].name(), "' into ", pieces,
          " pieces; wanted at most ", kMaxPieces, ", take larger ones"));
    }
    if (in_turn) {
      cutter.CutInTurn(tensor, uncut, pieces);
    } else {
      cutter.CutEvenly(tensor, uncut, pieces);
    }
  }
  return cutter.TakePieces();
}

Placement PlacePieces(size_t num_tensors, absl::Span<const Piece> pieces,
                      absl::Span<const int> tasks) {
  assert(pieces.size() == tasks.size());
  Placement placement(num_tensors);
  for (size_t i = 0; i < pieces.size(); ++i) {
    std::vector<TensorExtent>& extents = placement[pieces[i].tensor];
    if (!extents.empty() && extents.back().ps == tasks[i]) {
      extents.back().length += pieces[i].length;
    } else {
      extents.push_back({tasks[i], pieces[i].begin, pieces[i].length});
    }
  }
  return placement;
}

}  // namespace muster
