#include "common/rpc/buffer_quota.h"

namespace muster {

BufferQuota::BufferQuota(size_t bytes, int max_threads, const Clock* clock)
    : bytes_(bytes), clock_(clock), quota_("muster") {
  // Twice as much, so that it is this thread that finds more than `bytes`.
  quota_.Resize(2 * bytes_).SetMaxThreads(max_threads);
  thread_ = clock_->StartThread([this] { Run(); });
}

BufferQuota::~BufferQuota() {
  {
    absl::MutexLock lock(&mu_);
    closing_ = true;
  }
  thread_.reset();
}

void BufferQuota::Run() {
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      if (clock_->Await(&mu_, absl::Condition(&closing_), kTick)) return;
    }
    // A quota that becomes smaller than what is in use makes gRPC give back the
    // difference before Resize returns; one that does not, costs two additions.
    quota_.Resize(bytes_);
    quota_.Resize(2 * bytes_);
  }
}

}  // namespace muster
