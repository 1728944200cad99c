#include "common/rpc/buffer_quota.h"

#include <poll.h>
#include <sys/eventfd.h>

namespace muster {

BufferQuota::BufferQuota(size_t bytes, int max_threads)
    : bytes_(bytes), end_(eventfd(0, EFD_CLOEXEC)), quota_("muster") {
  // Twice as much, so that it is the thread that finds more than `bytes`.
  quota_.Resize(2 * bytes_).SetMaxThreads(max_threads);
  // Without a descriptor left there is no server either.
  if (end_.valid()) thread_ = std::thread([this] { Run(); });
}

BufferQuota::~BufferQuota() {
  if (!thread_.joinable()) return;
  eventfd_write(end_.get(), 1);
  thread_.join();
}

void BufferQuota::Run() {
  pollfd end = {end_.get(), POLLIN, 0};
  while (poll(&end, 1, kTickMs) <= 0) {
    // A quota that becomes smaller than what is in use has gRPC give back the
    // difference before Resize returns; otherwise it costs two additions.
    quota_.Resize(bytes_);
    quota_.Resize(2 * bytes_);
  }
}

}  // namespace muster
