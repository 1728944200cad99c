// musterctl checkpoint diff: which tensors of two checkpoints differ, where and
// how far.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/process/exit_code.h"
#include "common/tensor/dtype.h"
#include "worker/ctl/checkpoint_path.h"
#include "worker/ctl/table_diff.h"
#include "worker/ctl/verb.h"

namespace muster {
namespace {

constexpr int64_t kPieceBytes = 1 << 20;
constexpr int kMostLines = 20;

std::map<std::string, const CheckpointPiece*> ByName(
    const CheckpointReader& reader) {
  std::map<std::string, const CheckpointPiece*> pieces;
  for (const CheckpointPiece& piece : reader.pieces()) {
    pieces[PieceName(piece)] = &piece;
  }
  return pieces;
}

std::string Describe(const CheckpointPiece& piece) {
  return absl::StrCat("[", absl::StrJoin(piece.parameter.shape(), ", "),
                      "] of ", DataTypeName(piece.dtype));
}

// How far apart the values of one tensor are.
struct Distance {
  int64_t count = 0;
  int64_t first = -1;
  // Infinite if one of two values is not a number.
  double largest = 0;
};

template <typename T>
void AddRun(const std::string& a, const std::string& b, int64_t offset,
            Distance* distance) {
  for (size_t i = 0; i < a.size() / sizeof(T); ++i) {
    T left;
    T right;
    std::memcpy(&left, a.data() + i * sizeof(T), sizeof(T));
    std::memcpy(&right, b.data() + i * sizeof(T), sizeof(T));
    if (std::memcmp(&left, &right, sizeof(T)) == 0) continue;
    if (distance->count++ == 0) {
      distance->first = offset + static_cast<int64_t>(i);
    }
    const double apart =
        std::abs(static_cast<double>(left) - static_cast<double>(right));
    distance->largest =
        std::max(distance->largest, std::isnan(apart) ? HUGE_VAL : apart);
  }
}

void AddRun(DataType dtype, const std::string& a, const std::string& b,
            int64_t offset, Distance* distance) {
  switch (dtype) {
    case FLOAT64:
      return AddRun<double>(a, b, offset, distance);
    case INT64:
      return AddRun<int64_t>(a, b, offset, distance);
    case INT32:
      return AddRun<int32_t>(a, b, offset, distance);
    case UINT8:
      return AddRun<uint8_t>(a, b, offset, distance);
    default:
      return AddRun<float>(a, b, offset, distance);
  }
}

absl::StatusOr<Distance> Measure(const CheckpointReader& a,
                                 const CheckpointReader& b,
                                 const CheckpointPiece& piece) {
  const auto size = static_cast<int64_t>(SizeOf(piece.dtype));
  const int64_t longest = kPieceBytes / size;
  Distance distance;
  std::string left;
  std::string right;
  for (int64_t offset = 0; offset < piece.elements; offset += longest) {
    const int64_t count = std::min(longest, piece.elements - offset);
    left.resize(static_cast<size_t>(count * size));
    right.resize(left.size());
    const std::string& name = piece.parameter.name();
    RETURN_IF_ERROR(a.Read(name, piece.slot, offset, count, left.data()));
    RETURN_IF_ERROR(b.Read(name, piece.slot, offset, count, right.data()));
    if (left != right) AddRun(piece.dtype, left, right, offset, &distance);
  }
  return distance;
}

// The difference in a tensor that both have; "" if there is none.
absl::StatusOr<std::string> CompareTensor(const CheckpointReader& a,
                                          const CheckpointReader& b,
                                          const CheckpointPiece& in_a,
                                          const CheckpointPiece& in_b) {
  if (Describe(in_a) != Describe(in_b)) {
    return absl::StrCat(Describe(in_a), " and ", Describe(in_b));
  }
  ASSIGN_OR_RETURN(const Distance distance, Measure(a, b, in_a));
  if (distance.count == 0) return "";
  return absl::StrFormat(
      "%d of %d elements differ, the first is %d; largest difference %g",
      distance.count, in_a.elements, distance.first, distance.largest);
}

std::map<std::string, int> TablesByName(const CheckpointReader& reader) {
  std::map<std::string, int> tables;
  for (int i = 0; i < reader.manifest().tables_size(); ++i) {
    tables[reader.manifest().tables(i).definition().name()] = i;
  }
  return tables;
}

// Appends a line for each table that differs. Returns how many either has.
absl::StatusOr<size_t> CompareAllTables(const CheckpointReader& a,
                                        const CheckpointReader& b,
                                        std::vector<std::string>* lines) {
  const std::map<std::string, int> in_a = TablesByName(a);
  std::map<std::string, int> in_b = TablesByName(b);
  for (const auto& [name, table] : in_a) {
    const auto other = in_b.find(name);
    if (other == in_b.end()) {
      lines->push_back(absl::StrCat(name, ": table only in ", a.path()));
      continue;
    }
    ASSIGN_OR_RETURN(const std::string differs,
                     CompareTables(a, table, b, other->second));
    if (!differs.empty()) lines->push_back(absl::StrCat(name, ": ", differs));
    in_b.erase(other);
  }
  for (const auto& [name, table] : in_b) {
    lines->push_back(absl::StrCat(name, ": table only in ", b.path()));
  }
  return in_a.size() + in_b.size();
}

// Compares parameters, slots and tables, and not steps, times and positions: a
// line for each of the first tensors that differ, and a sum.
absl::Status Compare(const CheckpointReader& a, const CheckpointReader& b,
                     VerbResult* result) {
  const auto in_a = ByName(a);
  const auto in_b = ByName(b);
  std::vector<std::string> lines;
  size_t tensors = in_a.size();  // of either
  for (const auto& [name, piece] : in_a) {
    const auto other = in_b.find(name);
    if (other == in_b.end()) {
      lines.push_back(absl::StrCat(name, ": only in ", a.path()));
      continue;
    }
    ASSIGN_OR_RETURN(const std::string differs,
                     CompareTensor(a, b, *piece, *other->second));
    if (!differs.empty()) lines.push_back(absl::StrCat(name, ": ", differs));
  }
  for (const auto& [name, piece] : in_b) {
    if (in_a.count(name) > 0) continue;
    lines.push_back(absl::StrCat(name, ": only in ", b.path()));
    ++tensors;
  }
  ASSIGN_OR_RETURN(const size_t tables, CompareAllTables(a, b, &lines));
  if (!lines.empty()) result->exit_code = kExitFailed;
  for (size_t i = 0; i < lines.size() && i < kMostLines; ++i) {
    absl::StrAppend(&result->out, lines[i], "\n");
  }
  absl::StrAppend(&result->out, a.path(), " (step ", a.manifest().global_step(),
                  ") and ", b.path(), " (step ", b.manifest().global_step(),
                  "): ", lines.size(), " of ", tensors + tables,
                  tables > 0 ? " tensors and tables" : " tensors", " differ\n");
  return absl::OkStatus();
}

absl::Status Diff(const VerbCall& call, VerbResult* result) {
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> a,
                   OpenNewestCheckpoint(call, call.arguments[0], &result->out));
  ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> b,
                   OpenNewestCheckpoint(call, call.arguments[1], &result->out));
  return Compare(*a, *b, result);
}

[[maybe_unused]] const bool kRegistered = VerbRegistry::Register(
    "checkpoint diff",
    {"PATH OTHER",
     "compares the tensors and tables of two checkpoints, bit for bit.\n"
     "  A train_dir stands for its newest whole checkpoint. Ends with 1 if "
     "they "
     "differ.",
     {},
     2,
     2,
     &Diff});

}  // namespace
}  // namespace muster
