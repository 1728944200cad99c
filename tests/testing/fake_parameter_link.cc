#include "tests/testing/fake_parameter_link.h"

#include <cstring>
#include <type_traits>

#include "common/rpc/call_table.h"

namespace muster {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

// dst += src, n floats; neither need be aligned.
void AddFloats(const char* src, int64_t n, char* dst) {
  for (int64_t i = 0; i < n; ++i) {
    float a;
    float b;
    std::memcpy(&a, src + i * kFloatBytes, kFloatBytes);
    std::memcpy(&b, dst + i * kFloatBytes, kFloatBytes);
    b += a;
    std::memcpy(dst + i * kFloatBytes, &b, kFloatBytes);
  }
}

int64_t Id(const char* bytes) {
  int64_t id;
  std::memcpy(&id, bytes, sizeof(id));
  return id;
}

}  // namespace

FakeParameterLink::FakeParameterLink(FakeShard* shard) : shard_(*shard) {
  const auto serve = [this](const auto& row, auto answer) {
    using Row = std::decay_t<decltype(row)>;
    calls_.Handle(row,
                  [answer](const typename Row::Request& request, absl::Time,
                           const auto& done) { done(answer(request)); });
  };
  serve(kHelloCall, [this](const HelloRequest&) {
    return shard_.Receive<HelloReply>([] { return HelloReply(); });
  });
  serve(kDefineCall,
        [this](const DefineRequest& request) { return Define(request); });
  serve(kSealCall, [this](const SealRequest&) {
    return shard_.Receive<SealReply>([] { return SealReply(); });
  });
  serve(kBeginSnapshotCall, [this](const BeginSnapshotRequest& request) {
    return BeginSnapshot(request);
  });
  serve(kEndSnapshotCall, [this](const EndSnapshotRequest&) {
    return shard_.Receive<EndSnapshotReply>([] { return EndSnapshotReply(); });
  });
}

absl::StatusOr<DefineReply> FakeParameterLink::Define(
    const DefineRequest& request) {
  return shard_.Receive<DefineReply>([&] {
    shard_.mu_.AssertHeld();
    shard_.values_.clear();
    for (const TensorDef& tensor : request.tensors()) {
      int64_t bytes = kFloatBytes;
      for (const int64_t dim : tensor.shape()) bytes *= dim;
      shard_.values_[tensor.name()] = std::string(bytes, '\0');
    }
    DefineReply reply;
    reply.add_slots("m");
    shard_.rows_.clear();
    for (const TableDef& table : request.tables()) {
      shard_.dims_[table.name()] = static_cast<size_t>(table.dim());
      reply.add_tables()->add_slots("m");
    }
    return reply;
  });
}

void FakeParameterLink::Load(Frame<LoadPart> request, absl::Time,
                             ReplyCallback<LoadReply> done) {
  const std::string data(request.data);
  done(shard_.Receive<LoadReply>([&] {
    shard_.mu_.AssertHeld();
    const char* src = data.data();
    if (request.header.has_rows()) {
      shard_.LoadRows(request.header.rows(), data);
    }
    for (const TensorSlice& slice : request.header.slices()) {
      std::memcpy(&shard_.values_[slice.tensor()][slice.offset() * kFloatBytes],
                  src, slice.length() * kFloatBytes);
      src += slice.length() * kFloatBytes;
    }
    return LoadReply();
  }));
}

void FakeParameterLink::Pull(const PullRequest& request, absl::Time,
                             ReplyCallback<Frame<PullReply>> done) {
  done(shard_.Receive<Frame<PullReply>>([&] {
    shard_.mu_.AssertHeld();
    ++shard_.pulls_;
    shard_.round_ = std::max(shard_.round_, request.token().round());
    Frame<PullReply> reply;
    reply.header.set_version(shard_.version_);
    reply.data = shard_.Values(request.slices());
    return reply;
  }));
}

void FakeParameterLink::Push(Frame<PushPart> request, absl::Time,
                             ReplyCallback<Frame<PushReply>> done) {
  std::string data(request.data);
  const PushPart& header = request.header;
  absl::StatusOr<Frame<PushReply>> reply =
      shard_.Receive<Frame<PushReply>>([&] {
        shard_.mu_.AssertHeld();
        Frame<PushReply> result;
        result.header = shard_.Apply(header, data);
        if (!result.header.late() && !result.header.duplicate() &&
            shard_.keep_) {
          shard_.kept_.push_back(request.data);
        }
        result.header.set_version(shard_.version_);
        if (!header.wants_values()) return result;
        result.data = shard_.Values(header.slices());
        return result;
      });
  request.data.Clear();
  done(std::move(reply));
}

PushReply FakeShard::Apply(const PushPart& header, const std::string& data) {
  learning_rate_factor_ = header.learning_rate_factor();
  PushReply result;
  if (header.round() != 0 && header.round() < round_) {
    result.set_late(true);
    return result;
  }
  const auto [step, is_new] =
      steps_.emplace(header.step(), version_ - header.pulled_version());
  if (is_new) ++version_;
  result.set_staleness(step->second);
  if (!applied_.insert({header.step(), header.part()}).second) {
    ++duplicates_;
    result.set_duplicate(true);
    return result;
  }
  AddRows(header, data);
  const char* src = data.data();
  for (const TensorSlice& slice : header.slices()) {
    AddFloats(src, slice.length(),
              &values_[slice.tensor()][slice.offset() * kFloatBytes]);
    src += slice.length() * kFloatBytes;
  }
  return result;
}

void FakeShard::AddRows(const PushPart& header, const std::string& data) {
  size_t rows = 0;
  for (const RowRun& run : header.rows()) rows += run.count();
  const char* id = data.data();
  const char* gradient = id + rows * sizeof(int64_t);
  for (const RowRun& run : header.rows()) {
    const size_t dim = dims_.at(run.table());
    for (int64_t i = 0; i < run.count(); ++i) {
      std::vector<float>& row = rows_[run.table()][Id(id)];
      row.resize(dim);
      AddFloats(gradient, static_cast<int64_t>(dim),
                reinterpret_cast<char*>(row.data()));
      id += sizeof(int64_t);
      gradient += dim * kFloatBytes;
    }
  }
}

void FakeShard::LoadRows(const RowRun& run, const std::string& data) {
  const size_t dim = dims_.at(run.table());
  const char* const values = data.data() + 2 * sizeof(int64_t) * run.count();
  for (int64_t i = 0; i < run.count(); ++i) {
    std::vector<float>& row =
        rows_[run.table()][Id(data.data() + i * sizeof(int64_t))];
    row.resize(dim);
    std::memcpy(row.data(), values + i * dim * kFloatBytes, dim * kFloatBytes);
  }
}

absl::Cord FakeShard::Rows(const PullRowsRequest& header,
                           const std::string& ids) {
  absl::Cord values;
  const char* id = ids.data();
  for (const RowRun& run : header.rows()) {
    const size_t dim = dims_.at(run.table());
    const std::map<int64_t, std::vector<float>>& rows = rows_[run.table()];
    for (int64_t i = 0; i < run.count(); ++i, id += sizeof(int64_t)) {
      const auto row = rows.find(Id(id));
      const std::vector<float> found =
          row == rows.end() ? std::vector<float>(dim) : row->second;
      values.Append(absl::string_view(
          reinterpret_cast<const char*>(found.data()), dim * kFloatBytes));
    }
  }
  return values;
}

absl::Cord FakeShard::Values(const Slices& slices) {
  absl::Cord values;
  for (const TensorSlice& slice : slices) {
    values.Append(values_[slice.tensor()].substr(slice.offset() * kFloatBytes,
                                                 slice.length() * kFloatBytes));
  }
  return values;
}

absl::StatusOr<BeginSnapshotReply> FakeParameterLink::BeginSnapshot(
    const BeginSnapshotRequest& request) {
  return shard_.Receive<BeginSnapshotReply>(
      [&]() -> absl::StatusOr<BeginSnapshotReply> {
        shard_.mu_.AssertHeld();
        const int64_t round = request.token().round();
        if (round != 0 && round < shard_.round_) {
          return absl::AbortedError("the shard is past the round");
        }
        shard_.round_ = std::max(shard_.round_, round);
        return BeginSnapshotReply();
      });
}

void FakeParameterLink::PullRows(Frame<PullRowsRequest> request, absl::Time,
                                 ReplyCallback<Frame<PullRowsReply>> done) {
  const std::string ids(request.data);
  done(shard_.Receive<Frame<PullRowsReply>>([&] {
    shard_.mu_.AssertHeld();
    ++shard_.row_pulls_;
    shard_.round_ = std::max(shard_.round_, request.header.token().round());
    Frame<PullRowsReply> reply;
    reply.header.set_version(shard_.version_);
    reply.data = shard_.Rows(request.header, ids);
    return reply;
  }));
}

void FakeParameterLink::ReadSnapshot(const ReadSnapshotRequest& request,
                                     absl::Time,
                                     ReplyCallback<Frame<SnapshotPart>> done) {
  done(shard_.Receive<Frame<SnapshotPart>>([&] {
    shard_.mu_.AssertHeld();
    Frame<SnapshotPart> reply;
    reply.data = shard_.Values(request.slices());
    return reply;
  }));
}

}  // namespace muster
