// A small model and the bytes of its checkpoints, for the checkpoint tests.
#ifndef TESTS_COMMON_CHECKPOINT_CHECKPOINT_FIXTURE_H_
#define TESTS_COMMON_CHECKPOINT_CHECKPOINT_FIXTURE_H_

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/checkpoint_writer.h"
#include "proto/checkpoint.pb.h"

namespace muster {

inline TensorDef MakeTensor(const std::string& name,
                            std::initializer_list<int64_t> shape,
                            TensorKind kind = TRAINABLE) {
  TensorDef def;
  def.set_name(name);
  for (const int64_t dim : shape) def.add_shape(dim);
  def.set_dtype(FLOAT32);
  def.set_kind(kind);
  return def;
}

// In creation order, which is not the order of names. The second one has two
// blocks; the third has no slots.
inline std::vector<TensorDef> ExampleParameters() {
  return {MakeTensor("dense/weights", {3, 2}),
          MakeTensor("conv/weights", {65537}),
          MakeTensor("bn/mean", {4}, STATE)};
}

// The same with less to write, for tests that save a thousand times.
inline std::vector<TensorDef> SmallParameters() {
  return {MakeTensor("dense/weights", {3, 2}),
          MakeTensor("conv/weights", {2500}),
          MakeTensor("bn/mean", {4}, STATE)};
}

inline std::vector<std::string> ExampleSlots() { return {"m", "v"}; }

// Every byte depends on the step, the tensor and its place.
inline std::string ExampleBytes(const CheckpointPiece& piece, int64_t step) {
  std::string bytes(static_cast<size_t>(piece.size_bytes), '\0');
  const size_t salt = piece.parameter.name().size() * 31 + piece.slot.size() +
                      static_cast<size_t>(step) * 7 +
                      (piece.slot.empty() ? 0 : piece.slot[0] * 13);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * 37 + i / 256 + salt);
  }
  return bytes;
}

inline CheckpointManifest ExampleManifest(int64_t step) {
  CheckpointManifest manifest;
  manifest.set_model_epoch(3);
  manifest.set_fingerprint(0x1234567890abcdef);
  manifest.set_seed(step * 2);
  manifest.mutable_optimizer()->set_name("adam");
  WorkerPosition* const worker = manifest.add_workers();
  worker->set_job("worker");
  worker->mutable_position()->set_kind("rows");
  worker->mutable_position()->set_rows(step);
  return manifest;
}

// One whole save of `step`, with the bytes of `version` and what is set of
// `set` beside the example's.
inline absl::Status SaveWith(
    const CheckpointManifest& set, FileSystem* file_system,
    const std::string& train_dir, int64_t step, const Retention& retention,
    int64_t version,
    const std::vector<TensorDef>& parameters = SmallParameters()) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<CheckpointWriter> writer,
      CheckpointWriter::Create({file_system, train_dir, step, retention},
                               parameters, ExampleSlots()));
  for (const CheckpointPiece& piece : writer->pieces()) {
    RETURN_IF_ERROR(writer->Append(ExampleBytes(piece, version)));
  }
  CheckpointManifest manifest = ExampleManifest(step);
  manifest.MergeFrom(set);
  return writer->Commit(manifest).status();
}
inline absl::Status SaveExample(
    FileSystem* file_system, const std::string& train_dir, int64_t step,
    const Retention& retention, int64_t version, double trained_s = 0,
    const std::vector<TensorDef>& parameters = ExampleParameters()) {
  CheckpointManifest set;
  set.set_trained_s(trained_s);
  return SaveWith(set, file_system, train_dir, step, retention, version,
                  parameters);
}
// One whose manifest names the best checkpoint.
inline absl::Status SaveNamingBest(FileSystem* file_system,
                                   const std::string& train_dir, int64_t step,
                                   int64_t best_step, int64_t model_epoch = 3) {
  CheckpointManifest set;
  set.set_model_epoch(model_epoch);
  set.mutable_evaluations()->set_global_step(step);
  WatchedFigure* const kept = set.mutable_evaluations()->mutable_kept();
  kept->set_metric("test_accuracy");
  kept->set_best(0.5);
  kept->set_best_step(best_step);
  return SaveWith(set, file_system, train_dir, step, Retention{2, 0}, step);
}
inline absl::Status SaveSmall(FileSystem* file_system,
                              const std::string& train_dir, int64_t step,
                              const Retention& retention, int64_t version) {
  return SaveExample(file_system, train_dir, step, retention, version,
                     /*trained_s=*/0, SmallParameters());
}
inline absl::Status SaveExample(FileSystem* file_system,
                                const std::string& train_dir, int64_t step,
                                int keep = 5) {
  return SaveExample(file_system, train_dir, step, Retention{keep, 0}, step);
}

// Does the reader hold SaveExample's bytes, all of them?
inline bool IsExample(const CheckpointReader& reader, int64_t step,
                      int64_t version) {
  if (reader.manifest().global_step() != step) return false;
  for (const CheckpointPiece& piece : reader.pieces()) {
    std::string found(static_cast<size_t>(piece.size_bytes), '\0');
    if (!reader
             .Read(piece.parameter.name(), piece.slot, 0, piece.elements,
                   found.data())
             .ok() ||
        found != ExampleBytes(piece, version)) {
      return false;
    }
  }
  return true;
}
inline bool IsExample(const CheckpointReader& reader, int64_t step) {
  return IsExample(reader, step, step);
}

}  // namespace muster

#endif  // TESTS_COMMON_CHECKPOINT_CHECKPOINT_FIXTURE_H_
