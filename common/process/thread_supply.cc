#include "common/process/thread_supply.h"

#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace muster {

absl::Status CheckThreads(int wanted) {
  absl::Notification done;
  std::vector<std::thread> threads;
  std::string failure;
  try {
    threads.reserve(wanted);
    for (int i = 0; i < wanted; ++i) {
      threads.emplace_back([&done] { done.WaitForNotification(); });
    }
  } catch (const std::system_error& error) {
    failure = error.what();
  } catch (const std::bad_alloc& error) {
    failure = error.what();
  }
  const size_t started = threads.size();
  done.Notify();
  for (std::thread& thread : threads) thread.join();
  if (failure.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "starting threads: wanted ", wanted, ", could start ", started, " (",
      failure,
      "); raise the limits of processes and of address space (ulimit -u, "
      "ulimit -v), or ask for fewer threads"));
}

}  // namespace muster
