#ifndef TESTS_WORKER_BACKEND_FAKE_MEAN_H_
#define TESTS_WORKER_BACKEND_FAKE_MEAN_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "tests/worker/backend/fake_streams.h"
#include "worker/backend/device_mean.h"

namespace muster {

// The mean over devices with FakeStreams: the work of each waits, as NCCL's
// does, until all others have come to theirs. Made as WriteMean makes it.
class FakeMean : public DeviceMean {
 public:
  // They outlive it.
  explicit FakeMean(std::vector<FakeStreams*> members)
      : DeviceMean(static_cast<int>(members.size())),
        members_(std::move(members)),
        gathered_(members_.size()) {}

  absl::Status Average(int member, float* data, int64_t elements) override;
  void Abort() override;

 private:
  absl::Status Meet(int member, absl::Span<float> data);
  void WriteAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::vector<FakeStreams*> members_;

  absl::Mutex mu_;
  std::vector<absl::Span<float>> gathered_ ABSL_GUARDED_BY(mu_);
  size_t num_gathered_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t round_ ABSL_GUARDED_BY(mu_) = 0;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_FAKE_MEAN_H_
