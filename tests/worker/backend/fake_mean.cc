#include "tests/worker/backend/fake_mean.h"

#include <algorithm>

#include "worker/tower/mean.h"

namespace muster {

absl::Status FakeMean::Average(int member, float* data, int64_t elements) {
  const absl::Span<float> span(data, static_cast<size_t>(elements));
  return members_[member]->PutWork(
      DeviceStreams::Stream::kToHost,
      [this, member, span] { return Meet(member, span); });
}

void FakeMean::Abort() {
  DeviceMean::Abort();
  absl::MutexLock lock(&mu_);
  ended_ = true;
}

absl::Status FakeMean::Meet(int member, absl::Span<float> data) {
  absl::MutexLock lock(&mu_);
  gathered_[member] = data;
  const int64_t round = round_;
  if (++num_gathered_ == gathered_.size()) {
    WriteAll();
    num_gathered_ = 0;
    ++round_;
    return absl::OkStatus();
  }
  const auto is_over = [this, round]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return round_ != round || ended_;
  };
  mu_.Await(absl::Condition(&is_over));
  if (round_ != round) return absl::OkStatus();
  return absl::InternalError("the mean was aborted");
}

void FakeMean::WriteAll() {
  const std::vector<absl::Span<const float>> sources(gathered_.begin(),
                                                     gathered_.end());
  std::vector<float> mean(gathered_.front().size());
  WriteMean(sources, absl::MakeSpan(mean));
  for (const absl::Span<float> to : gathered_) {
    std::copy(mean.begin(), mean.end(), to.begin());
  }
}

}  // namespace muster
