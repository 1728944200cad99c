#include "worker/ctl/table_totals.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/escape.h"

namespace muster {
namespace {

constexpr char kRow[] = "%-24s %-16s %6s %-10s %12s %10s %10s %10s  %s\n";

// One table on all ps tasks.
struct Totals {
  TableDef definition;
  int64_t bytes = 0;
  int64_t rows = 0;
  int64_t created = 0;
  int64_t evicted = 0;
  // By ps task; 0 for one that has no such table.
  std::vector<int64_t> rows_of;
};

// By namespace and name.
using Tables = std::map<std::pair<std::string, std::string>, Totals>;

void Add(const TableState& state, size_t ps_task, size_t num_ps,
         Totals* totals) {
  totals->definition = state.definition();
  totals->bytes += state.bytes();
  totals->rows += state.rows();
  totals->created += state.created_rows();
  totals->evicted += state.evicted_rows();
  totals->rows_of.resize(num_ps);
  totals->rows_of[ps_task] = state.rows();
}

Tables TablesOf(const std::vector<ListNamespacesReply>& shards) {
  Tables tables;
  for (size_t i = 0; i < shards.size(); ++i) {
    for (const NamespaceState& space : shards[i].namespaces()) {
      for (const TableState& state : space.shard().tables()) {
        Add(state, i, shards.size(),
            &tables[{space.namespace_(), state.definition().name()}]);
      }
    }
  }
  return tables;
}

std::string DescribeRow(const std::string& space, const std::string& name,
                        const Totals& totals) {
  return absl::StrFormat(
      kRow, EscapeForLog(name, 128),
      absl::StrCat("'", EscapeForLog(space, 128), "'"),
      absl::StrCat(totals.definition.dim()),
      EscapeForLog(totals.definition.optimizer().name(), 40),
      absl::StrCat(totals.rows),
      absl::StrCat(totals.rows > 0 ? totals.bytes / totals.rows : 0),
      absl::StrCat(totals.created), absl::StrCat(totals.evicted),
      absl::StrJoin(totals.rows_of, " "));
}

}  // namespace

std::string DescribeTables(const std::vector<ListNamespacesReply>& shards) {
  const Tables tables = TablesOf(shards);
  if (tables.empty()) return "the ps tasks hold no tables\n";
  std::string text =
      absl::StrFormat(kRow, "table", "namespace", "dim", "rule", "rows",
                      "bytes/row", "created", "evicted", "rows by ps task");
  for (const auto& [key, totals] : tables) {
    text += DescribeRow(key.first, key.second, totals);
  }
  return text;
}

}  // namespace muster
