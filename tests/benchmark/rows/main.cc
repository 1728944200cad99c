// Measures rows of sparse tables, and prints them as one line of JSON:
//   bazel run //tests/benchmark/rows -- --figure=map --rows=1000000
//
//   map     rows in slabs, found by absl::flat_hash_map in 1,024 logical
//   shards:
//           the bound of a row store on one core, without all else
//   store   ps_server/block/row_table, in place of it
//   client  muster::Client on one ps_server (--ps_server) through shared
//   memory;
//           CPU time of both
//
// Ids are Zipf's, in batches; every batch is pulled, and pushed to.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/config/command_line.h"
#include "common/optimizer/update_rule.h"
#include "common/process/exit_code.h"
#include "common/rpc/protocol.h"
#include "common/tensor/row_hash.h"
#include "proto/table.pb.h"
#include "ps_server/block/row_table.h"
#include "worker/client/client.h"

ABSL_FLAG(std::string, figure, "", "map, store or client.");
ABSL_FLAG(int64_t, rows, 1000000, "Ids of the table, all of them there.");
ABSL_FLAG(int, dim, 16, "Values of a row.");
ABSL_FLAG(std::string, optimizer, "adagrad", "Update rule (store, client).");
ABSL_FLAG(int, batches, 128, "Batches that are measured.");
ABSL_FLAG(std::string, ps_address, "", "Of a ps_server (client).");
ABSL_FLAG(int, ps_pid, 0, "Its process, whose CPU time counts, too (client).");

namespace muster {
namespace {

// Ids of one step, about those of a click model's batch of 256 rows.
constexpr int64_t kBatch = 4096;
constexpr double kZipf = 1.05;

// One step's ids, distinct, those of a logical shard in one run.
using Batch = std::vector<int64_t>;

int64_t IdOf(uint64_t i) { return static_cast<int64_t>(SplitMix64(i + 1)); }

// Zipf's by the inverse of its cumulative distribution.
std::vector<Batch> MakeBatches(int64_t rows, int batches, const RowHash& hash) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> uniform(0, 1);
  const double top = std::pow(static_cast<double>(rows), 1 - kZipf) - 1;
  std::vector<Batch> all(batches);
  for (Batch& batch : all) {
    for (int64_t i = 0; i < kBatch; ++i) {
      const double rank = std::pow(1 + uniform(random) * top, 1 / (1 - kZipf));
      batch.push_back(
          IdOf(std::min<uint64_t>(static_cast<uint64_t>(rank), rows) - 1));
    }
    std::sort(batch.begin(), batch.end(), [&hash](int64_t a, int64_t b) {
      return std::make_pair(hash.LogicalShardOf(a), a) <
             std::make_pair(hash.LogicalShardOf(b), b);
    });
    batch.erase(std::unique(batch.begin(), batch.end()), batch.end());
  }
  return all;
}

double CpuSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

// The CPU time of another process, by the kernel's ticks.
double CpuSecondsOf(int pid) {
  if (pid == 0) return 0;
  std::ifstream file(absl::StrFormat("/proc/%d/stat", pid));
  std::stringstream text;
  text << file.rdbuf();
  // The name in parentheses may have spaces.
  const std::string stat = text.str();
  std::stringstream rest(stat.substr(std::min(stat.size(), stat.rfind(')'))));
  std::string field;
  for (int i = 0; i < 12; ++i) rest >> field;
  int64_t user = 0;
  int64_t system = 0;
  rest >> user >> system;
  return static_cast<double>(user + system) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

// What is measured: a table with all of its rows.
class RowStore {
 public:
  virtual ~RowStore() = default;
  virtual absl::Status Insert(const Batch& ids) = 0;
  virtual absl::Status Pull(const Batch& ids, float* values) = 0;
  virtual absl::Status Push(const Batch& ids, const float* gradients) = 0;
  // 0: not known.
  virtual double bytes_a_row() const { return 0; }
};

// The bare map, with Adagrad as a plain loop.
class MapStore : public RowStore {
 public:
  explicit MapStore(int64_t dim) : dim_(dim), shards_(kLogicalShards) {}

  absl::Status Insert(const Batch& ids) override {
    for (const int64_t id : ids) Find(id);
    return absl::OkStatus();
  }
  absl::Status Pull(const Batch& ids, float* values) override {
    for (const int64_t id : ids) {
      std::memcpy(values, Find(id), dim_ * sizeof(float));
      values += dim_;
    }
    return absl::OkStatus();
  }
  absl::Status Push(const Batch& ids, const float* gradients) override {
    for (const int64_t id : ids) {
      float* const row = Find(id);
      for (int64_t k = 0; k < dim_; ++k) {
        float& sum = row[dim_ + k];
        sum += gradients[k] * gradients[k];
        row[k] -= 0.01f * gradients[k] / (std::sqrt(sum) + 1e-10f);
      }
      gradients += dim_;
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kSlab = 256;

  struct Hash {
    size_t operator()(int64_t id) const {
      return SplitMix64(static_cast<uint64_t>(id));
    }
  };
  struct Shard {
    absl::flat_hash_map<int64_t, int64_t, Hash> map;
    std::vector<std::unique_ptr<float[]>> slabs;
    int64_t rows = 0;
  };

  float* Find(int64_t id) {
    const int64_t width = 2 * dim_;
    Shard& shard = shards_[Hash()(id) >> 54];
    const auto [it, is_new] = shard.map.try_emplace(id, shard.rows);
    if (is_new) {
      if (shard.rows % kSlab == 0) {
        shard.slabs.emplace_back(new float[kSlab * width]());
      }
      ++shard.rows;
    }
    return shard.slabs[it->second / kSlab].get() + it->second % kSlab * width;
  }

  const int64_t dim_;
  std::vector<Shard> shards_;
};

OptimizerSpec Optimizer() {
  OptimizerSpec spec;
  spec.set_name(absl::GetFlag(FLAGS_optimizer));
  return spec;
}

class TableStore : public RowStore {
 public:
  static absl::StatusOr<std::unique_ptr<RowStore>> Create(int64_t dim) {
    TableDef def;
    def.set_name("rows");
    def.set_dim(dim);
    *def.mutable_optimizer() = Optimizer();
    def.set_scale(0.05f);
    ASSIGN_OR_RETURN(auto rule, CreateUpdateRule(def.optimizer()));
    return std::make_unique<TableStore>(
        RowTable(def, std::move(rule), 0, kLogicalShards));
  }
  explicit TableStore(RowTable table) : table_(std::move(table)) {}

  absl::Status Insert(const Batch& ids) override {
    gradients_.resize(ids.size() * table_.dim(), 1e-3f);
    return Push(ids, gradients_.data());
  }
  absl::Status Pull(const Batch& ids, float* values) override {
    table_.Read(ids, values);
    return absl::OkStatus();
  }
  absl::Status Push(const Batch& ids, const float* gradients) override {
    if (!table_.Reserve(table_.CountNew(ids))) {
      return absl::ResourceExhaustedError("no memory");
    }
    table_.Update(ids, gradients, {++updates_, 1}, &snapshot_);
    return absl::OkStatus();
  }
  double bytes_a_row() const override {
    return static_cast<double>(table_.bytes()) /
           static_cast<double>(std::max<int64_t>(1, table_.rows()));
  }

 private:
  RowTable table_;
  ShardSnapshot snapshot_;
  int64_t updates_ = 0;
  std::vector<float> gradients_;
};

class ClientStore : public RowStore {
 public:
  static absl::StatusOr<std::unique_ptr<RowStore>> Create(int64_t dim) {
    Client::Options options;
    options.ps_addresses = {absl::GetFlag(FLAGS_ps_address)};
    options.optimizer = Optimizer();
    Client::Table table;
    table.name = "rows";
    table.dim = dim;
    options.tables = {table};
    options.link = LinkChoice::kSharedMemory;
    const std::vector<Client::Tensor> tensors = {{"bias", {1}}};
    ASSIGN_OR_RETURN(auto client, Client::Connect(options, tensors));
    const std::vector<float> bias(1, 0);
    RETURN_IF_ERROR(client->Initialize({absl::MakeConstSpan(bias)}));
    std::vector<float> pulled(1);
    RETURN_IF_ERROR(client->Pull({absl::MakeSpan(pulled)}));
    return std::make_unique<ClientStore>(std::move(client), dim);
  }
  ClientStore(std::unique_ptr<Client> client, int64_t dim)
      : client_(std::move(client)), dim_(dim) {}

  absl::Status Insert(const Batch& ids) override {
    gradients_.resize(ids.size() * dim_, 1e-3f);
    return Push(ids, gradients_.data());
  }
  absl::Status Pull(const Batch& ids, float* values) override {
    return client_->PullRows(0, ids, absl::MakeSpan(values, ids.size() * dim_));
  }
  absl::Status Push(const Batch& ids, const float* gradients) override {
    return client_
        ->PushRows(0, ids, absl::MakeConstSpan(gradients, ids.size() * dim_))
        .status();
  }

 private:
  const std::unique_ptr<Client> client_;
  const int64_t dim_;
  std::vector<float> gradients_;
};

absl::StatusOr<std::unique_ptr<RowStore>> MakeStore() {
  const std::string figure = absl::GetFlag(FLAGS_figure);
  const int64_t dim = absl::GetFlag(FLAGS_dim);
  if (figure == "map") return std::make_unique<MapStore>(dim);
  if (figure == "store") return TableStore::Create(dim);
  if (figure == "client") return ClientStore::Create(dim);
  return absl::InvalidArgumentError("--figure: wanted map, store or client");
}

absl::Status InsertAll(int64_t rows, const RowHash& hash, RowStore* store) {
  // Batches of ids whose logical shards are in order.
  for (int64_t begin = 0; begin < rows; begin += kBatch) {
    Batch ids;
    for (int64_t i = begin; i < std::min(rows, begin + kBatch); ++i) {
      ids.push_back(IdOf(i));
    }
    std::sort(ids.begin(), ids.end(), [&hash](int64_t a, int64_t b) {
      return hash.LogicalShardOf(a) < hash.LogicalShardOf(b);
    });
    RETURN_IF_ERROR(store->Insert(ids));
  }
  return absl::OkStatus();
}

absl::Status Measure() {
  const int64_t rows = absl::GetFlag(FLAGS_rows);
  const int pid = absl::GetFlag(FLAGS_ps_pid);
  const RowHash hash("rows");
  ASSIGN_OR_RETURN(const std::unique_ptr<RowStore> store, MakeStore());
  RETURN_IF_ERROR(InsertAll(rows, hash, store.get()));
  const std::vector<Batch> batches =
      MakeBatches(rows, absl::GetFlag(FLAGS_batches), hash);
  std::vector<float> values(kBatch * absl::GetFlag(FLAGS_dim), 1e-3f);
  double pulls = 0;
  double pushes = 0;
  int64_t touched = 0;
  const double others = CpuSecondsOf(pid);
  for (const Batch& batch : batches) {
    const double begin = CpuSeconds();
    RETURN_IF_ERROR(store->Pull(batch, values.data()));
    const double pulled = CpuSeconds();
    RETURN_IF_ERROR(store->Push(batch, values.data()));
    pulls += pulled - begin;
    pushes += CpuSeconds() - pulled;
    touched += static_cast<int64_t>(batch.size());
  }
  const double cpu = pulls + pushes + CpuSecondsOf(pid) - others;
  std::printf(
      "{\"rows\": %d, \"pull_rows_per_cpu_s\": %.0f, \"push_rows_per_cpu_s\": "
      "%.0f, \"rows_per_cpu_s\": %.0f, \"bytes_a_row\": %.1f}\n",
      static_cast<int>(touched), touched / pulls, touched / pushes,
      touched / cpu, store->bytes_a_row());
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  CommandLineOptions options;
  options.program = "rows";
  options.summary = "Measures rows of sparse tables.";
  options.version = absl::StrCat("muster ", kMusterVersion);
  options.groups = {{"Figure", {"figure"}},
                    {"Work", {"rows", "dim", "optimizer", "batches"}},
                    {"The client's ps task", {"ps_address", "ps_pid"}}};
  const CommandLine line = ParseCommandLine(
      std::vector<std::string>(argv + 1, argv + argc), options);
  std::fputs(line.out.c_str(), stdout);
  std::fputs(line.error.c_str(), stderr);
  if (line.exit_code.has_value()) return *line.exit_code;
  const absl::Status status = Measure();
  if (status.ok()) return kExitDone;
  std::fprintf(stderr, "rows: %s\n", std::string(status.message()).c_str());
  return kExitBadConfig;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
