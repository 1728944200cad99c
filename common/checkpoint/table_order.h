#ifndef COMMON_CHECKPOINT_TABLE_ORDER_H_
#define COMMON_CHECKPOINT_TABLE_ORDER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/tensor/row_hash.h"

namespace muster {

// Checks the order of a table's rows: by logical shard, then by id (signed),
// and no id twice. Not thread-safe.
class TableOrder {
 public:
  explicit TableOrder(std::string table) : table_(table), hash_(table) {}

  // The next ids. Errors: DataLoss naming the table, the id and its row.
  absl::Status Add(absl::Span<const int64_t> ids) {
    for (const int64_t id : ids) {
      const int shard = hash_.LogicalShardOf(id);
      const bool fits =
          shard > last_shard_ || (shard == last_shard_ && id > last_id_);
      if (!fits) {
        return absl::DataLossError(absl::StrCat(
            "table '", table_, "': row ", rows_, " has id ", id,
            " (logical shard ", shard, ") behind id ", last_id_, " (",
            last_shard_,
            "); wanted rows by logical shard, then id, each once"));
      }
      last_shard_ = shard;
      last_id_ = id;
      ++rows_;
    }
    return absl::OkStatus();
  }

 private:
  const std::string table_;
  const RowHash hash_;
  int64_t rows_ = 0;
  int last_shard_ = -1;
  int64_t last_id_ = 0;
};

}  // namespace muster

#endif  // COMMON_CHECKPOINT_TABLE_ORDER_H_
