#include "tests/simulation/row_world.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/tensor/row_hash.h"
#include "tests/ps_server/shard/row_shard.h"
#include "tests/ps_server/shard/shard_requests.h"

namespace muster {
namespace {

constexpr char kTable[] = "rows";
constexpr int kIds = 24;

TableDef MakeWorldTable(Random* random) {
  TableDef table = MakeTable(kTable, random->Between(1, 5));
  table.set_initial(random->Happens(0.5) ? ZEROS : UNIFORM);
  table.set_scale(1);
  table.set_seed(random->Next());
  // At most one or two rows a logical shard, or any number.
  if (random->Happens(0.6)) {
    table.set_max_rows(kLogicalShards * random->Between(1, 2));
  }
  return table;
}

// Ids of few logical shards, so that rows have to go.
std::vector<int64_t> MakeIds(Random* random) {
  const RowHash hash(kTable);
  std::set<int> shards;
  while (shards.size() < 6) {
    shards.insert(static_cast<int>(random->Between(0, kLogicalShards - 1)));
  }
  std::vector<int64_t> ids;
  while (ids.size() < kIds) {
    const auto id = static_cast<int64_t>(random->Next());
    if (shards.count(hash.LogicalShardOf(id)) > 0) ids.push_back(id);
  }
  return ids;
}

// The order of a client's rows.
void SortIds(std::vector<int64_t>* ids) {
  const RowHash hash(kTable);
  std::sort(ids->begin(), ids->end(), [&hash](int64_t a, int64_t b) {
    return std::make_pair(hash.LogicalShardOf(a), a) <
           std::make_pair(hash.LogicalShardOf(b), b);
  });
}

std::vector<SavedRow> RowsOf(const Frame<SnapshotPart>& part, int64_t dim) {
  const int64_t n = part.header.rows().count();
  const std::string data(part.data);
  std::vector<SavedRow> rows(n);
  for (int64_t i = 0; i < n; ++i) {
    const char* const at = data.data();
    std::memcpy(&rows[i].id, at + 8 * i, 8);
    std::memcpy(&rows[i].updates, at + 8 * (n + i), 8);
    rows[i].values.resize(dim);
    std::memcpy(rows[i].values.data(), at + 16 * n + 4 * dim * i, 4 * dim);
  }
  return rows;
}

absl::Cord DataOf(const std::vector<SavedRow>& rows) {
  absl::Cord data;
  for (const SavedRow& row : rows) data.Append(BytesOf<int64_t>({row.id}));
  for (const SavedRow& row : rows) data.Append(BytesOf<int64_t>({row.updates}));
  for (const SavedRow& row : rows) data.Append(BytesOf(row.values));
  return data;
}

}  // namespace

RowWorld::RowWorld(uint64_t seed, RowBug bug)
    : bug_(bug),
      random_(seed),
      table_(MakeWorldTable(&random_)),
      sync_(random_.Happens(0.5)),
      ids_(MakeIds(&random_)) {
  const int64_t workers = random_.Between(1, 4);
  for (int i = 0; i < workers; ++i) {
    workers_.push_back({MakeSender(i, 100 + i)});
  }
  StartPs();
}

std::string RowWorld::Run(int events) {
  for (int i = 0; i < events && wrong_.empty(); ++i) {
    const auto worker =
        static_cast<int>(random_.Between(0, workers_.size() - 1));
    const double what = random_.Fraction();
    if (what < 0.35) {
      Step(worker);
    } else if (what < 0.8 && !messages_.empty()) {
      Deliver(random_.Between(0, messages_.size() - 1));
    } else if (what < 0.84) {
      Restart(worker);
    } else if (what < 0.98) {
      snapshots_.empty() ? BeginSnapshot() : ReadSnapshot();
    } else if (what < 0.985) {
      Crash();
    }
    if (sync_) CloseRound();
  }
  return wrong_;
}

void RowWorld::Check(bool holds, const std::string& what) {
  if (!holds && wrong_.empty()) wrong_ = what;
}

Fence RowWorld::FenceOf(int64_t epoch) const { return MakeFence(epoch); }

int RowWorld::PsOf(int64_t id) const {
  return PsOfLogicalShard(RowHash(kTable).LogicalShardOf(id),
                          static_cast<int>(shards_.size()));
}

std::vector<int64_t> RowWorld::SomeIds() {
  std::set<int64_t> some;
  const int64_t count = random_.Between(1, 6);
  for (int64_t i = 0; i < count; ++i) {
    some.insert(ids_[random_.Between(0, kIds - 1)]);
  }
  return {some.begin(), some.end()};
}

// ---- Ps tasks ---------------------------------------------------------------

void RowWorld::StartPs() {
  const auto num_ps = static_cast<int>(random_.Between(1, 3));
  ++epoch_;
  shards_.clear();
  models_.assign(num_ps, RowModel(table_));
  versions_.assign(num_ps, 0);
  has_token_.assign(num_ps, false);
  snapshots_.clear();
  round_ = 1;
  chosen_.clear();
  kept_.clear();
  mean_.clear();
  for (int ps = 0; ps < num_ps; ++ps) {
    ShardOptions options;
    options.incarnation = kPsIncarnation;
    options.ps_index = ps;
    shards_.push_back(std::make_unique<ParameterShard>(options));
  }
  for (const Worker& worker : workers_) Hello(worker.sender);
  for (int ps = 0; ps < num_ps; ++ps) {
    DefineRequest define = MakeDefine(workers_[0].sender, {}, epoch_);
    *define.add_tables() = table_;
    define.set_ps_index(ps);
    define.set_num_ps(num_ps);
    if (sync_) define.mutable_replication()->mutable_sync();
    const auto defined = shards_[ps]->Define(define);
    Check(defined.ok(), absl::StrCat("define: ", defined.status().message()));
  }
  LoadSaved();
  for (auto& shard : shards_) {
    Check(shard->Seal(MakeSeal(workers_[0].sender, epoch_)).ok(), "seal");
  }
}

void RowWorld::Hello(const Sender& sender) {
  for (auto& shard : shards_) {
    const auto reply = shard->Hello(MakeHello(sender));
    Check(reply.ok(), "hello");
    if (!reply.ok() || reply->takeover() == 0) continue;
    Check(shard->Hello(MakeHello(sender, reply->takeover())).ok(), "takeover");
  }
}

void RowWorld::LoadSaved() {
  std::map<int, std::vector<SavedRow>> of_ps;
  for (const SavedRow& row : saved_) {
    const int ps = PsOf(row.id);
    models_[ps].Load(row);
    if (bug_ == RowBug::kRowIsLostOnItsMove && ps > 0) continue;
    of_ps[ps].push_back(row);
  }
  for (const auto& [ps, rows] : of_ps) {
    Frame<LoadPart> load =
        MakeRowLoad(workers_[0].sender, kTable,
                    static_cast<int64_t>(rows.size()), DataOf(rows));
    *load.header.mutable_fence() = FenceOf(epoch_);
    // A repeat changes nothing.
    for (int i = 0; i < 2; ++i) {
      Check(shards_[ps]->Load(load).ok(), "load of rows");
    }
  }
}

void RowWorld::Crash() {
  ++seen_.crashes;
  StartPs();
}

// ---- Steps ------------------------------------------------------------------

StepToken RowWorld::Token() const {
  StepToken token;
  if (!sync_) return token;
  token.set_round(round_);
  for (const int worker : chosen_) {
    ChosenStep* const step = token.add_chosen();
    *step->mutable_sender() = workers_[worker].sender;
    step->set_step(workers_[worker].step);
  }
  return token;
}

bool RowWorld::IsBusy(int worker) const {
  for (const Message& message : messages_) {
    if (message.worker == worker && message.epoch == epoch_ &&
        !message.was_applied &&
        message.part.header.sender().incarnation() ==
            workers_[worker].sender.incarnation()) {
      return true;
    }
  }
  for (const Kept& kept : kept_) {
    if (kept.worker == worker) return true;
  }
  return false;
}

void RowWorld::Step(int worker) {
  if (IsBusy(worker)) return;
  std::map<int, std::vector<int64_t>> of_ps;
  for (const int64_t id : SomeIds()) of_ps[PsOf(id)].push_back(id);
  std::vector<int64_t> versions;
  for (size_t ps = 0; ps < shards_.size(); ++ps) {
    SortIds(&of_ps[ps]);
    versions.push_back(
        Pull(static_cast<int>(ps), workers_[worker].sender, of_ps[ps]));
  }
  ++workers_[worker].step;
  for (size_t ps = 0; ps < shards_.size(); ++ps) {
    Send(worker, static_cast<int>(ps), of_ps[ps], versions[ps]);
  }
}

int64_t RowWorld::Pull(int ps, const Sender& sender,
                       const std::vector<int64_t>& ids) {
  Frame<PullRowsRequest> pull = MakePullRows(sender, {{kTable, ids, {}}});
  *pull.header.mutable_fence() = FenceOf(epoch_);
  *pull.header.mutable_token() = Token();
  if (sync_ && !has_token_[ps]) ApplyMean(ps);
  const auto reply = shards_[ps]->PullRows(pull);
  Check(reply.ok(), absl::StrCat("pull: ", reply.status().message()));
  if (!reply.ok()) return 0;
  std::vector<float> wanted;
  for (const int64_t id : ids) {
    for (const float value : models_[ps].Values(id)) wanted.push_back(value);
  }
  Check(ValuesOf<float>(reply->data) == wanted, "pulled values differ");
  if (bug_ == RowBug::kPullCreates && !ids.empty()) {
    const std::vector<float> zeros(ids.size() * table_.dim(), 0);
    Sender ghost = MakeSender(9, 999);
    Hello(ghost);
    Frame<PushPart> push =
        MakeRowPush(ghost, epoch_ * 1000000 + ++round_, {{kTable, ids, zeros}});
    *push.header.mutable_fence() = FenceOf(epoch_);
    shards_[ps]->Push(push).IgnoreError();
  }
  Check(shards_[ps]->State().tables(0).rows() == models_[ps].rows(),
        absl::StrCat("there are ", shards_[ps]->State().tables(0).rows(),
                     " rows, wanted ", models_[ps].rows()));
  return reply->header.version();
}

void RowWorld::Send(int worker, int ps, std::vector<int64_t> ids,
                    int64_t version) {
  const auto half = static_cast<int64_t>(ids.size()) / 2;
  const int parts = half > 0 && random_.Happens(0.4) ? 2 : 1;
  for (int part = 0; part < parts; ++part) {
    Message message;
    message.ps = ps;
    message.worker = worker;
    message.epoch = epoch_;
    message.ids.assign(
        ids.begin() + (part == 0 ? 0 : half),
        parts == 1 || part == 1 ? ids.end() : ids.begin() + half);
    for (size_t i = 0; i < message.ids.size() * table_.dim(); ++i) {
      message.gradients.push_back(
          static_cast<float>(random_.Between(-8, 8) * workers_.size()));
    }
    message.part =
        MakeRowPush(workers_[worker].sender, workers_[worker].step,
                    {{kTable, message.ids, message.gradients}}, part, parts);
    *message.part.header.mutable_fence() = FenceOf(epoch_);
    message.part.header.set_pulled_version(version);
    if (sync_) message.part.header.set_round(round_);
    messages_.push_back(std::move(message));
  }
}

void RowWorld::Deliver(size_t index) {
  const Message message = messages_[index];
  const auto num_ps = static_cast<int>(shards_.size());
  const bool is_fenced = message.epoch != epoch_ || message.ps >= num_ps ||
                         message.part.header.sender().incarnation() !=
                             workers_[message.worker].sender.incarnation();
  if (is_fenced) {
    messages_.erase(messages_.begin() + static_cast<int64_t>(index));
    if (message.ps >= num_ps) return;
    Check(absl::IsFailedPrecondition(
              shards_[message.ps]->Push(message.part).status()),
          "a part of another time was not fenced");
    return;
  }
  const auto reply = shards_[message.ps]->Push(message.part);
  Check(reply.ok(), absl::StrCat("push: ", reply.status().message()));
  if (!reply.ok()) return;
  Check(reply->header.duplicate() == message.was_applied,
        "a part was taken for another's, or twice");
  const bool is_old = sync_ && message.part.header.round() < round_;
  // Until the next token comes the shard does not know.
  const bool is_late = is_old && (has_token_[message.ps] ||
                                  message.part.header.round() < round_ - 1);
  if (message.was_applied) ++seen_.repeats;
  if (is_late) ++seen_.late;
  if (!message.was_applied) {
    Check(reply->header.late() == is_late,
          absl::StrCat("part ", message.part.header.part(), " of round ",
                       message.part.header.round(), " is ",
                       is_late ? "not " : "", "late in round ", round_));
    if (!is_old) Apply(message);
  }
  // Some are sent again.
  if (random_.Happens(0.3)) {
    messages_[index].was_applied = true;
  } else {
    messages_.erase(messages_.begin() + static_cast<int64_t>(index));
  }
}

void RowWorld::Apply(const Message& message) {
  if (sync_) {
    kept_.push_back(
        {message.ps, message.worker, message.ids, message.gradients});
    return;
  }
  int64_t& version = versions_[message.ps];
  const int64_t now = shards_[message.ps]->State().version();
  const bool begins = now > version;
  Update(message.ps, message.ids, message.gradients,
         begins ? version : version - 1);
  version = now;
  if (bug_ == RowBug::kRowTwiceInAStep && !message.ids.empty()) {
    Message twice = message;
    Sender ghost = MakeSender(9, 999);
    Hello(ghost);
    twice.part.header.mutable_sender()->CopyFrom(ghost);
    twice.part.header.set_step(epoch_ * 1000000 + message.part.header.step());
    shards_[message.ps]->Push(twice.part).IgnoreError();
    version = shards_[message.ps]->State().version();
  }
}

void RowWorld::Update(int ps, const std::vector<int64_t>& ids,
                      const std::vector<float>& gradients, int64_t version) {
  RowModel& model = models_[ps];
  const int64_t evicted = model.evicted();
  model.Update(ids, gradients, version);
  seen_.evictions += model.evicted() - evicted;
  if (!snapshots_.empty()) {
    seen_.evictions_in_snapshots += model.evicted() - evicted;
  }
}

// ---- Rounds -----------------------------------------------------------------

void RowWorld::CloseRound() {
  std::set<int> whole;
  for (size_t worker = 0; worker < workers_.size(); ++worker) {
    const auto index = static_cast<int>(worker);
    const bool has_some =
        std::any_of(kept_.begin(), kept_.end(),
                    [index](const Kept& kept) { return kept.worker == index; });
    const bool is_under_way = std::any_of(
        messages_.begin(), messages_.end(), [&](const Message& message) {
          return message.worker == index && message.epoch == epoch_ &&
                 !message.was_applied && message.part.header.round() == round_;
        });
    if (has_some && !is_under_way) whole.insert(index);
  }
  const size_t wanted = std::max<size_t>(1, workers_.size() - 1);
  if (whole.size() < wanted) return;
  // In an order of its own.
  std::vector<int> order(whole.begin(), whole.end());
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random_.Between(0, i - 1)]);
  }
  order.resize(wanted);
  // Who has no token yet makes this update before the next.
  for (size_t ps = 0; ps < shards_.size(); ++ps) {
    if (!has_token_[ps]) Pull(static_cast<int>(ps), workers_[0].sender, {});
  }
  chosen_ = order;
  mean_ = std::exchange(kept_, {});
  ++round_;
  has_token_.assign(shards_.size(), false);
}

void RowWorld::ApplyMean(int ps) {
  has_token_[ps] = true;
  if (chosen_.empty()) return;
  const RowHash hash(kTable);
  std::map<std::pair<int, int64_t>, std::vector<float>> sums;
  std::map<int64_t, int> touched;
  for (const int worker : chosen_) {
    for (const Kept& kept : mean_) {
      if (kept.ps != ps || kept.worker != worker) continue;
      for (size_t i = 0; i < kept.ids.size(); ++i) {
        ++touched[kept.ids[i]];
        std::vector<float>& sum =
            sums[{hash.LogicalShardOf(kept.ids[i]), kept.ids[i]}];
        sum.resize(table_.dim(), 0);
        for (int64_t k = 0; k < table_.dim(); ++k) {
          sum[k] += kept.gradients[i * table_.dim() + k];
        }
      }
    }
  }
  std::vector<int64_t> ids;
  std::vector<float> gradients;
  for (const auto& [key, sum] : sums) {
    ids.push_back(key.second);
    const auto divisor = static_cast<float>(bug_ == RowBug::kMeanOverWhoTouched
                                                ? touched[key.second]
                                                : chosen_.size());
    for (const float value : sum) gradients.push_back(value / divisor);
  }
  Update(ps, ids, gradients, versions_[ps]);
  ++versions_[ps];
}

// ---- Starts, snapshots ------------------------------------------------------

void RowWorld::Restart(int worker) {
  // A round's chosen workers are named by their starts.
  if (sync_) return;
  Sender& sender = workers_[worker].sender;
  sender.set_incarnation(sender.incarnation() + 10);
  workers_[worker].step = 0;
  Hello(sender);
  // Its snapshot ends with its start.
  if (worker == 0) snapshots_.clear();
}

void RowWorld::BeginSnapshot() {
  cut_ = models_;
  reading_ps_ = 0;
  read_.clear();
  for (size_t ps = 0; ps < shards_.size(); ++ps) {
    if (sync_ && !has_token_[ps]) ApplyMean(static_cast<int>(ps));
    BeginSnapshotRequest begin;
    *begin.mutable_sender() = workers_[0].sender;
    *begin.mutable_fence() = FenceOf(epoch_);
    *begin.mutable_token() = Token();
    const auto reply = shards_[ps]->BeginSnapshot(begin);
    Check(reply.ok(), absl::StrCat("cut: ", reply.status().message()));
    if (!reply.ok()) return;
    snapshots_.push_back(reply->snapshot());
    Check(reply->tables_size() == 1 &&
              reply->tables(0).rows() == models_[ps].rows(),
          "the cut tells of another number of rows");
  }
  cut_ = models_;
  cursor_.Clear();
  cursor_.set_logical_shard(0);
}

void RowWorld::ReadSnapshot() {
  ReadSnapshotRequest read;
  *read.mutable_sender() = workers_[0].sender;
  *read.mutable_fence() = FenceOf(epoch_);
  read.set_snapshot(snapshots_[reading_ps_]);
  read.set_table(kTable);
  *read.mutable_cursor() = cursor_;
  const auto part = shards_[reading_ps_]->ReadSnapshot(read);
  Check(part.ok(), absl::StrCat("read: ", part.status().message()));
  if (!part.ok()) return;
  // Its answer may be lost.
  const auto again = shards_[reading_ps_]->ReadSnapshot(read);
  Check(again.ok() && again->data == part->data, "a repeated read differs");
  for (SavedRow& row : RowsOf(*part, table_.dim())) {
    const bool has_gone =
        models_[reading_ps_].Saved() != cut_[reading_ps_].Saved() &&
        models_[reading_ps_].Values(row.id) != row.values;
    if (bug_ == RowBug::kEvictedRowIsNotSaved && has_gone) continue;
    if (bug_ == RowBug::kCountOfTheTable) row.updates = versions_[reading_ps_];
    read_.push_back(std::move(row));
  }
  if (part->header.has_next()) {
    cursor_ = part->header.next();
    return;
  }
  ++reading_ps_;
  cursor_.Clear();
  const auto num_ps = static_cast<int>(shards_.size());
  if (reading_ps_ == num_ps) return FinishSnapshot();
  cursor_.set_logical_shard(FirstLogicalShard(reading_ps_, num_ps));
}

void RowWorld::FinishSnapshot() {
  std::vector<SavedRow> wanted;
  for (const RowModel& model : cut_) {
    for (SavedRow& row : model.Saved()) wanted.push_back(std::move(row));
  }
  Check(read_ == wanted,
        absl::StrCat("the snapshot has ", read_.size(),
                     " rows and is not as the cut, of ", wanted.size()));
  ++seen_.saves;
  saved_ = read_;
  snapshots_.clear();
}

}  // namespace muster
