#include "ps_server/block/row_checks.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/cord_bytes.h"
#include "common/base/finite.h"
#include "common/base/nearest_name.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"

namespace muster {
namespace {

constexpr int kMaxRuns = 1024;
constexpr size_t kShownName = 255;

template <typename T>
std::vector<T> ReadNext(absl::Cord::CharIterator* position, size_t count) {
  std::vector<T> values(count);
  CopyNext(position, count * sizeof(T), reinterpret_cast<char*>(values.data()));
  return values;
}

// Whether the data are as many bytes as the rows of the runs take.
absl::Status CheckSizes(absl::string_view what, const RowRuns& runs,
                        absl::Span<const RowIds> rows, const absl::Cord& data,
                        absl::Span<const RowTable> tables,
                        absl::FunctionRef<int64_t(const RowTable&)> row_bytes) {
  int64_t left = kMaxPartBytes;
  for (int i = 0; i < runs.size(); ++i) {
    const int64_t bytes =
        row_bytes(tables[rows[i].table]) + int64_t{sizeof(int64_t)};
    // By division: a product could overflow.
    if (runs[i].count() < 0 || runs[i].count() > left / bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": ", runs[i].count(), " rows of '", runs[i].table(), "', ",
          bytes, " bytes each; wanted 0 or more, and at most a part's ",
          kMaxPartBytes, " bytes"));
    }
    left -= runs[i].count() * bytes;
  }
  const int64_t wanted = kMaxPartBytes - left;
  if (static_cast<uint64_t>(wanted) == data.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what, ": the rows take ", wanted, " bytes, the frame has ", data.size()));
}

absl::Status CheckHere(absl::string_view what, absl::Span<const int64_t> ids,
                       const RowTable& table) {
  for (const int64_t id : ids) {
    if (table.Has(id)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": row ", id, " of '", table.def().name(),
        "' is in logical shard ", table.hash().LogicalShardOf(id),
        "; this ps task has those from ", table.first_logical_shard(), " to ",
        table.end_logical_shard() - 1, ": the cluster is another one?"));
  }
  return absl::OkStatus();
}

absl::Status CheckTableOnce(absl::string_view what,
                            absl::Span<const RowIds> rows,
                            absl::Span<const RowTable> tables) {
  std::vector<bool> is_there(tables.size(), false);
  for (const RowIds& run : rows) {
    if (is_there[run.table]) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": two runs are of '",
                       tables[run.table].def().name(), "'; join them"));
    }
    is_there[run.table] = true;
  }
  return absl::OkStatus();
}

absl::Status NotFinite(absl::string_view what, const RowTable& table,
                       absl::Span<const int64_t> ids,
                       absl::Span<const float> values) {
  const int64_t bad = FirstNonFinite(values);
  return absl::InvalidArgumentError(
      absl::StrCat(what, ": row ", ids[bad / table.dim()], " of '",
                   table.def().name(), "' has NaN or infinity at element ",
                   bad % table.dim(), "; nothing was changed"));
}

// Puts n rows of `dim` values in the order of their places.
template <typename T>
std::vector<T> Ordered(const std::vector<T>& values, int64_t dim,
                       absl::Span<const uint32_t> places) {
  std::vector<T> ordered;
  ordered.reserve(values.size());
  for (const uint32_t place : places) {
    const auto row = values.begin() + place * dim;
    ordered.insert(ordered.end(), row, row + dim);
  }
  return ordered;
}

}  // namespace

absl::StatusOr<int> FindTable(absl::string_view name,
                              absl::Span<const RowTable> tables) {
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i].def().name() == name) return static_cast<int>(i);
  }
  std::vector<std::string> known;
  for (const RowTable& table : tables) known.push_back(table.def().name());
  const std::string shown(name.substr(0, kShownName));
  const std::string nearest = NearestName(shown, known);
  return absl::NotFoundError(absl::StrCat(
      "this shard has no table '", absl::CHexEscape(shown), "'",
      nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?")));
}

absl::StatusOr<std::vector<RowIds>> CheckRowIds(
    absl::string_view what, const RowRuns& runs, const absl::Cord& data,
    absl::Span<const RowTable> tables,
    absl::FunctionRef<int64_t(const RowTable&)> row_bytes) {
  if (runs.size() > kMaxRuns) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": ", runs.size(), " runs of rows; at most ", kMaxRuns));
  }
  std::vector<RowIds> rows(runs.size());
  for (int i = 0; i < runs.size(); ++i) {
    const absl::StatusOr<int> table = FindTable(runs[i].table(), tables);
    RETURN_IF_ERROR(Annotate(table.status(), what));
    rows[i].table = *table;
  }
  RETURN_IF_ERROR(CheckSizes(what, runs, rows, data, tables, row_bytes));
  absl::Cord::CharIterator position = data.char_begin();
  for (int i = 0; i < runs.size(); ++i) {
    rows[i].ids = ReadNext<int64_t>(&position, runs[i].count());
    RETURN_IF_ERROR(CheckHere(what, rows[i].ids, tables[rows[i].table]));
  }
  return rows;
}

absl::StatusOr<std::vector<uint32_t>> CheckDistinct(
    absl::string_view what, absl::Span<const int64_t> ids,
    const RowTable& table) {
  const auto key = [&](uint32_t place) {
    return std::make_pair(table.hash().LogicalShardOf(ids[place]), ids[place]);
  };
  const auto less = [&](uint32_t a, uint32_t b) { return key(a) < key(b); };
  std::vector<uint32_t> places(ids.size());
  std::iota(places.begin(), places.end(), 0);
  if (!std::is_sorted(places.begin(), places.end(), less)) {
    std::sort(places.begin(), places.end(), less);
  }
  for (size_t i = 1; i < places.size(); ++i) {
    if (ids[places[i - 1]] != ids[places[i]]) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": row ", ids[places[i]], " of '",
                     table.def().name(), "' is there twice; wanted once"));
  }
  return places;
}

absl::StatusOr<std::vector<CheckedRows>> CheckRowGradients(
    absl::string_view what, const RowRuns& runs, const absl::Cord& data,
    absl::Span<const RowTable> tables, bool allow_non_finite) {
  const auto gradient_bytes = [](const RowTable& table) {
    return table.dim() * int64_t{sizeof(float)};
  };
  ASSIGN_OR_RETURN(std::vector<RowIds> rows,
                   CheckRowIds(what, runs, data, tables, gradient_bytes));
  RETURN_IF_ERROR(CheckTableOnce(what, rows, tables));
  absl::Cord::CharIterator position = data.char_begin();
  for (const RowIds& run : rows) {
    absl::Cord::Advance(&position, run.ids.size() * sizeof(int64_t));
  }
  std::vector<CheckedRows> checked;
  for (RowIds& run : rows) {
    const RowTable& table = tables[run.table];
    std::vector<float> gradients =
        ReadNext<float>(&position, run.ids.size() * table.dim());
    if (!allow_non_finite && FirstNonFinite(gradients) >= 0) {
      return NotFinite(what, table, run.ids, gradients);
    }
    ASSIGN_OR_RETURN(const std::vector<uint32_t> places,
                     CheckDistinct(what, run.ids, table));
    if (!std::is_sorted(places.begin(), places.end())) {
      run.ids = Ordered(run.ids, 1, places);
      gradients = Ordered(gradients, table.dim(), places);
    }
    checked.push_back({run.table, table.dim(), table.hash(), std::move(run.ids),
                       std::move(gradients)});
  }
  return checked;
}

}  // namespace muster
