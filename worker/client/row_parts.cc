#include "worker/client/row_parts.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/cord_bytes.h"
#include "common/base/status_macros.h"
#include "common/rpc/protocol.h"
#include "common/tensor/row_hash.h"

namespace muster {
namespace {

// The room in a header for the names of tables, as for those of tensors; so
// there are fewer than 1,024 runs.
constexpr int64_t kMaxRunHeaderBytes = kMaxHeaderBytes / 2;
constexpr int64_t kRunOverheadBytes = 32;

// Where the rows of each logical shard begin; that of kLogicalShards is their
// end.
using ShardBegins = std::array<size_t, kLogicalShards + 1>;

// Appends the ids to `rows`, by logical shard and id.
ShardBegins AppendSorted(const RowHash& hash, absl::Span<const int64_t> ids,
                         std::vector<RowParts::Row>* rows) {
  ShardBegins begins = {};
  std::vector<uint16_t> shards(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    shards[i] = static_cast<uint16_t>(hash.LogicalShardOf(ids[i]));
    ++begins[shards[i] + 1];
  }
  begins[0] = rows->size();
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  rows->resize(begins.back());
  ShardBegins next = begins;
  for (size_t i = 0; i < ids.size(); ++i) {
    (*rows)[next[shards[i]]++] = {ids[i], i};
  }
  for (int shard = 0; shard < kLogicalShards; ++shard) {
    std::sort(rows->begin() + begins[shard], rows->begin() + begins[shard + 1],
              [](const RowParts::Row& a, const RowParts::Row& b) {
                return std::pair(a.id, a.index) < std::pair(b.id, b.index);
              });
  }
  return begins;
}

absl::Status CheckTable(const ClientModel& model, int table) {
  const auto tables = static_cast<int>(model.tables.size());
  if (table >= 0 && table < tables) return absl::OkStatus();
  return absl::InvalidArgumentError(
      tables == 0 ? std::string("rows: the model has no tables")
                  : absl::StrCat("rows of table ", table,
                                 "; wanted one from 0 to ", tables - 1));
}

absl::Status Repeated(const TableDef& table, int64_t id) {
  return absl::InvalidArgumentError(
      absl::StrCat("rows of '", table.name(), "': id ", id,
                   " is there twice; wanted each once (add its gradients up)"));
}

}  // namespace

// Fills the parts of one RowParts.
class RowCutter {
 public:
  RowCutter(const RowParts::Options& options,
            std::vector<int64_t> max_part_bytes, RowParts* made)
      : options_(options),
        max_part_bytes_(std::move(max_part_bytes)),
        header_bytes_(max_part_bytes_.size(), 0),
        made_(*made) {
    made_.parts_.resize(max_part_bytes_.size());
  }

  // Adds all of one table. Errors: InvalidArgument for a repeated id.
  absl::Status Add(size_t input, const TableDef& table,
                   absl::Span<const int64_t> ids) {
    const ShardBegins begins =
        AppendSorted(RowHash(table.name()), ids, &made_.rows_);
    for (size_t i = begins[0] + 1;
         !options_.may_repeat && i < made_.rows_.size(); ++i) {
      if (!IsNew(i)) return Repeated(table, made_.rows_[i].id);
    }
    const auto num_ps = static_cast<int>(max_part_bytes_.size());
    for (int ps = 0; ps < num_ps; ++ps) {
      AddTo(ps, input, table, begins[FirstLogicalShard(ps, num_ps)],
            begins[FirstLogicalShard(ps + 1, num_ps)]);
    }
    return absl::OkStatus();
  }

 private:
  bool IsNew(size_t row) const {
    return made_.rows_[row].id != made_.rows_[row - 1].id;
  }

  void AddTo(int ps, size_t input, const TableDef& table, size_t begin,
             size_t end) {
    const int64_t row_bytes =
        options_.integers * static_cast<int64_t>(sizeof(int64_t)) +
        options_.vectors * table.dim() * static_cast<int64_t>(sizeof(float));
    const int64_t header_bytes =
        static_cast<int64_t>(table.name().size()) + kRunOverheadBytes;
    std::vector<RowParts::Part>& parts = made_.parts_[ps];
    while (begin < end) {
      int64_t room =
          parts.empty()
              ? 0
              : (max_part_bytes_[ps] - parts.back().bytes) / row_bytes;
      if (room <= 0 || header_bytes_[ps] + header_bytes > kMaxRunHeaderBytes) {
        parts.emplace_back();
        header_bytes_[ps] = 0;
        room = std::max<int64_t>(1, max_part_bytes_[ps] / row_bytes);
      }
      RowParts::Run run{input, begin, begin, 0};
      while (run.end < end &&
             (run.count < room || (run.end > begin && !IsNew(run.end)))) {
        if (run.end == begin || IsNew(run.end)) ++run.count;
        ++run.end;
      }
      header_bytes_[ps] += header_bytes;
      parts.back().bytes += run.count * row_bytes;
      parts.back().runs.push_back(run);
      begin = run.end;
    }
  }

  const RowParts::Options& options_;
  const std::vector<int64_t> max_part_bytes_;
  // Of the last part, by ps.
  std::vector<int64_t> header_bytes_;
  RowParts& made_;
};

namespace {

// The indices of `ids` in the order of their tables. Errors: InvalidArgument
// for one that is not the model's, or comes twice.
absl::StatusOr<std::vector<size_t>> ByTable(
    const ClientModel& model, absl::Span<const RowParts::Ids> ids) {
  std::vector<size_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return ids[a].table < ids[b].table;
  });
  int last = -1;
  for (const size_t input : order) {
    const int table = ids[input].table;
    RETURN_IF_ERROR(CheckTable(model, table));
    if (std::exchange(last, table) != table) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rows of '", model.tables[table].name(),
                     "' are there twice; wanted all of a table together"));
  }
  return order;
}

// The ps task that has more parts than it may; -1: none.
int FirstOver(const RowParts& parts, const std::vector<int64_t>& most) {
  for (size_t ps = 0; ps < most.size(); ++ps) {
    const int over = static_cast<int>(ps);
    if (static_cast<int64_t>(parts.of(over).size()) > most[ps]) return over;
  }
  return -1;
}

}  // namespace

absl::StatusOr<RowParts> RowParts::Cut(const ClientModel& model,
                                       absl::Span<const Ids> ids,
                                       const Options& options) {
  ASSIGN_OR_RETURN(const std::vector<size_t> by_table, ByTable(model, ids));
  std::vector<TableDef> tables;
  for (const Ids& of : ids) tables.push_back(model.tables[of.table]);
  const std::vector<int64_t> largest(model.fences.size(), kMaxPartBytes);
  for (const std::vector<int64_t>& bytes : {model.part_bytes, largest}) {
    RowParts made;
    made.tables_ = tables;
    RowCutter cutter(options, bytes, &made);
    for (const size_t input : by_table) {
      RETURN_IF_ERROR(cutter.Add(input, tables[input], ids[input].ids));
    }
    for (std::vector<Part>& parts : made.parts_) {
      if (options.every_ps && parts.empty()) parts.emplace_back();
    }
    const int over = FirstOver(made, options.most_parts);
    if (over < 0) return made;
    if (bytes != largest) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rows of one step: ", made.of(over).size(), " parts of ",
                     kMaxPartBytes, " bytes for ps task ", over,
                     ", wanted at most ", options.most_parts[over],
                     "; give fewer rows in a step, or start more ps tasks"));
  }
  return absl::InternalError("not reached");
}

std::vector<std::vector<int64_t>> RowParts::PartBytes() const {
  std::vector<std::vector<int64_t>> bytes(parts_.size());
  for (size_t ps = 0; ps < parts_.size(); ++ps) {
    for (const Part& part : parts_[ps]) bytes[ps].push_back(part.bytes);
  }
  return bytes;
}

int64_t RowParts::bytes() const {
  int64_t bytes = 0;
  for (const std::vector<Part>& parts : parts_) {
    for (const Part& part : parts) bytes += part.bytes;
  }
  return bytes;
}

void RowParts::FillRuns(
    const Part& part, google::protobuf::RepeatedPtrField<RowRun>* runs) const {
  for (const Run& run : part.runs) {
    RowRun& message = *runs->Add();
    message.set_table(tables_[run.input].name());
    message.set_count(run.count);
  }
}

absl::Cord RowParts::DataOf(
    const Part& part, absl::Span<const std::vector<Column>> columns) const {
  std::string data;
  data.reserve(part.bytes);
  const auto append = [&data](const void* bytes, size_t size_bytes) {
    data.append(static_cast<const char*>(bytes), size_bytes);
  };
  for (const Run& run : part.runs) {
    const Row* last = nullptr;
    for (const Row& row : rows(run)) {
      const Row* const before = std::exchange(last, &row);
      if (before != nullptr && before->id == row.id) continue;
      append(&row.id, sizeof(row.id));
    }
  }
  for (const Run& run : columns.empty() ? std::vector<Run>() : part.runs) {
    for (const Column& column : columns[run.input]) {
      const char* const elements = static_cast<const char*>(column.elements);
      for (const Row& row : rows(run)) {
        append(elements + row.index * column.element_bytes,
               column.element_bytes);
      }
    }
  }
  return absl::Cord(std::move(data));
}

absl::Status RowParts::Scatter(const Part& part, const absl::Cord& data,
                               absl::Span<const TableRows> into) const {
  int64_t wanted = 0;
  for (const Run& run : part.runs) {
    wanted += run.count * tables_[run.input].dim();
  }
  wanted *= sizeof(float);
  if (static_cast<int64_t>(data.size()) != wanted) {
    return absl::InternalError(absl::StrCat(
        "asked for ", wanted, " bytes of rows, got ", data.size()));
  }
  auto position = data.char_begin();
  for (const Run& run : part.runs) {
    const auto dim = static_cast<size_t>(tables_[run.input].dim());
    float* const values = into[run.input].values.data();
    const absl::Span<const Row> of_run = rows(run);
    for (size_t i = 0; i < of_run.size(); ++i) {
      float* const to = values + of_run[i].index * dim;
      if (i > 0 && of_run[i].id == of_run[i - 1].id) {
        std::copy_n(values + of_run[i - 1].index * dim, dim, to);
      } else {
        CopyNext(&position, dim * sizeof(float), reinterpret_cast<char*>(to));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace muster
