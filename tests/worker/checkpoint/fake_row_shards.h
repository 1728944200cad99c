#ifndef TESTS_WORKER_CHECKPOINT_FAKE_ROW_SHARDS_H_
#define TESTS_WORKER_CHECKPOINT_FAKE_ROW_SHARDS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/row_block.h"
#include "common/rpc/parameter_link.h"
#include "common/tensor/row_hash.h"
#include "proto/checkpoint.pb.h"
#include "proto/parameter_service.pb.h"

namespace muster {

// The rows of tables on some ps tasks, as their snapshots answer for them and
// loads change them. Not thread-safe.
class FakeRowShards {
 public:
  // An answer has at most `rows_a_part` rows.
  FakeRowShards(int num_ps, std::vector<SavedTable> tables, int rows_a_part = 3)
      : num_ps_(num_ps),
        rows_a_part_(rows_a_part),
        tables_(std::move(tables)),
        rows_(tables_.size()) {}

  int num_ps() const { return num_ps_; }

  // Takes the rows, each of which replaces an older one.
  absl::Status Load(int table, const RowBlock& rows) {
    ++loads;
    for (int64_t i = 0; i < rows.rows(); ++i) {
      const int64_t id = rows.ids()[i];
      std::string& bytes = rows_[table][{Hash(table).LogicalShardOf(id), id}];
      bytes.clear();
      for (size_t s = 0; s < rows.num_streams(); ++s) {
        const absl::string_view all = rows.stream_bytes(s);
        const size_t width = all.size() / static_cast<size_t>(rows.rows());
        bytes += std::string(all.substr(static_cast<size_t>(i) * width, width));
      }
    }
    return absl::OkStatus();
  }

  std::vector<BeginSnapshotReply> Snapshots() const {
    std::vector<BeginSnapshotReply> replies(num_ps_);
    for (int ps = 0; ps < num_ps_; ++ps) {
      for (size_t t = 0; t < tables_.size(); ++t) {
        TableState* const state = replies[ps].add_tables();
        *state->mutable_definition() = tables_[t].definition();
        *state->mutable_slots() = tables_[t].slots();
        for (const auto& [place, bytes] : rows_[t]) {
          if (PsOfLogicalShard(place.first, num_ps_) == ps) {
            state->set_rows(state->rows() + 1);
          }
        }
      }
    }
    return replies;
  }

  absl::StatusOr<Frame<SnapshotPart>> Read(int ps_task, absl::string_view table,
                                           const RowCursor& cursor) const {
    int index = 0;
    while (tables_[index].definition().name() != table) ++index;
    const Places& places = rows_[index];
    auto place =
        cursor.has_after_id()
            ? places.upper_bound({cursor.logical_shard(), cursor.after_id()})
            : places.lower_bound({cursor.logical_shard(), INT64_MIN});
    const auto is_here = [&] {
      return place != places.end() &&
             PsOfLogicalShard(place->first.first, num_ps_) == ps_task;
    };
    RowBlock rows(tables_[index].definition().dim(),
                  tables_[index].slots_size());
    std::vector<const std::string*> found;
    Frame<SnapshotPart> part;
    for (; is_here() && static_cast<int>(found.size()) < rows_a_part_;
         ++place) {
      found.push_back(&place->second);
      part.header.mutable_next()->set_logical_shard(place->first.first);
      part.header.mutable_next()->set_after_id(place->first.second);
    }
    if (!is_here()) part.header.clear_next();
    part.header.mutable_rows()->set_table(std::string(table));
    part.header.mutable_rows()->set_count(static_cast<int64_t>(found.size()));
    part.data = absl::Cord(Join(found, &rows));
    return part;
  }

  int64_t rows(int table) const {
    return static_cast<int64_t>(rows_[table].size());
  }
  // A row's streams, one behind the other.
  std::string RowOf(int table, int64_t id) const {
    return rows_[table].at({Hash(table).LogicalShardOf(id), id});
  }

  int loads = 0;

 private:
  // By logical shard and id.
  using Places = std::map<std::pair<int, int64_t>, std::string>;

  RowHash Hash(int table) const {
    return RowHash(tables_[table].definition().name());
  }
  static std::string Join(const std::vector<const std::string*>& found,
                          RowBlock* rows) {
    rows->Resize(static_cast<int64_t>(found.size()));
    size_t at = 0;
    for (size_t s = 0; !found.empty() && s < rows->num_streams(); ++s) {
      const size_t width = rows->stream_bytes(s).size() / found.size();
      for (size_t i = 0; i < found.size(); ++i) {
        std::copy_n(found[i]->data() + at, width,
                    rows->stream_data(s) + i * width);
      }
      at += width;
    }
    return std::string(rows->data(),
                       static_cast<size_t>(rows->rows() * rows->row_bytes()));
  }

  const int num_ps_;
  const int rows_a_part_;
  const std::vector<SavedTable> tables_;
  std::vector<Places> rows_;
};

}  // namespace muster

#endif  // TESTS_WORKER_CHECKPOINT_FAKE_ROW_SHARDS_H_
