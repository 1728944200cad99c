#ifndef TESTS_PS_SERVER_SHARD_ROW_SHARD_H_
#define TESTS_PS_SERVER_SHARD_ROW_SHARD_H_

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/tensor/row_hash.h"
#include "gtest/gtest.h"
#include "ps_server/shard/parameter_shard.h"
#include "tests/ps_server/shard/shard_requests.h"
#include "tests/testing/status_matchers.h"

namespace muster {

// Rows of one table, with the values or gradients of all.
struct TestRows {
  std::string table;
  std::vector<int64_t> ids;
  std::vector<float> values;
};

inline TableDef MakeTable(const std::string& name, int64_t dim,
                          const std::string& rule = "sgd") {
  TableDef def;
  def.set_name(name);
  def.set_dim(dim);
  def.mutable_optimizer()->set_name(rule);
  if (rule == "sgd") {
    Attr* const rate = def.mutable_optimizer()->add_attr();
    rate->set_name("learning_rate");
    rate->set_f(1.0);
  }
  def.set_scale(0.05F);
  def.set_seed(7);
  return def;
}

inline DefineRequest MakeDefineTables(const Sender& sender,
                                      const std::vector<TableDef>& tables,
                                      int ps = 0, int num_ps = 1) {
  DefineRequest define = MakeDefine(sender, {});
  for (const TableDef& table : tables) *define.add_tables() = table;
  define.set_ps_index(ps);
  define.set_num_ps(num_ps);
  return define;
}

template <typename Header>
void AddRows(const std::vector<TestRows>& rows, Frame<Header>* request) {
  for (const TestRows& run : rows) {
    RowRun* const added = request->header.add_rows();
    added->set_table(run.table);
    added->set_count(run.ids.size());
    request->data.Append(BytesOf(run.ids));
  }
}

inline Frame<PushPart> MakeRowPush(const Sender& sender, int64_t step,
                                   const std::vector<TestRows>& rows,
                                   int32_t part = 0, int32_t parts = 1) {
  Frame<PushPart> push = MakePush(sender, step, {}, absl::Cord(), part, parts);
  push.header.set_is_rows(true);
  AddRows(rows, &push);
  for (const TestRows& run : rows) push.data.Append(BytesOf(run.values));
  return push;
}

inline Frame<PullRowsRequest> MakePullRows(const Sender& sender,
                                           const std::vector<TestRows>& rows) {
  Frame<PullRowsRequest> pull;
  *pull.header.mutable_sender() = sender;
  *pull.header.mutable_fence() = MakeFence();
  AddRows(rows, &pull);
  return pull;
}

// `data` is a LoadPart's.
inline Frame<LoadPart> MakeRowLoad(const Sender& sender,
                                   const std::string& table, int64_t count,
                                   absl::Cord data) {
  Frame<LoadPart> load = MakeLoad(sender, {}, std::move(data));
  load.header.mutable_rows()->set_table(table);
  load.header.mutable_rows()->set_count(count);
  return load;
}

// A READY shard with tables, which is a ps task of several perhaps.
class RowShard {
 public:
  explicit RowShard(const DefineRequest& define,
                    int64_t max_bytes = int64_t{1} << 30)
      : shard_(Options(define, max_bytes)) {
    EXPECT_THAT(shard_.Hello(MakeHello(chief_)), IsOk());
    EXPECT_THAT(shard_.Define(define), IsOk());
  }
  RowShard(const std::vector<TableDef>& tables, int ps = 0, int num_ps = 1)
      : RowShard(MakeDefineTables(MakeSender(0, 100), tables, ps, num_ps)) {
    Seal();
  }

  void Seal() { EXPECT_THAT(shard_.Seal(MakeSeal(chief_)), IsOk()); }

  std::vector<float> Pull(const std::string& table,
                          const std::vector<int64_t>& ids,
                          const StepToken& token = {}) {
    Frame<PullRowsRequest> pull = MakePullRows(chief_, {{table, ids, {}}});
    *pull.header.mutable_token() = token;
    const auto reply = shard_.PullRows(pull);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? ValuesOf<float>(reply->data) : std::vector<float>();
  }

  void Push(int64_t step, const std::vector<TestRows>& rows) {
    EXPECT_THAT(shard_.Push(MakeRowPush(chief_, step, rows)), IsOk());
  }

  TableState Table(int table = 0) const { return shard_.State().tables(table); }

  // Everything that a snapshot has of a table, as messages.
  std::vector<Frame<SnapshotPart>> ReadRows(uint64_t snapshot,
                                            const std::string& table) {
    std::vector<Frame<SnapshotPart>> parts;
    ReadSnapshotRequest read;
    *read.mutable_sender() = chief_;
    *read.mutable_fence() = MakeFence();
    read.set_snapshot(snapshot);
    read.set_table(table);
    for (bool goes_on = true; goes_on;) {
      const auto part = shard_.ReadSnapshot(read);
      EXPECT_THAT(part, IsOk());
      if (!part.ok()) return parts;
      parts.push_back(*part);
      goes_on = part->header.has_next();
      *read.mutable_cursor() = part->header.next();
    }
    return parts;
  }
  uint64_t BeginSnapshot() {
    BeginSnapshotRequest begin;
    *begin.mutable_sender() = chief_;
    *begin.mutable_fence() = MakeFence();
    const auto reply = shard_.BeginSnapshot(begin);
    EXPECT_THAT(reply, IsOk());
    return reply.ok() ? reply->snapshot() : 0;
  }

  ParameterShard& shard() { return shard_; }
  const Sender& chief() const { return chief_; }

 private:
  static ShardOptions Options(const DefineRequest& define, int64_t max_bytes) {
    ShardOptions options;
    options.incarnation = kPsIncarnation;
    options.ps_index = define.ps_index();
    options.max_bytes = max_bytes;
    return options;
  }

  const Sender chief_ = MakeSender(0, 100);
  ParameterShard shard_;
};

}  // namespace muster

#endif  // TESTS_PS_SERVER_SHARD_ROW_SHARD_H_
