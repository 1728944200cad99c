// Abseil's mutexes, notifications and counters as ThreadSanitizer sees them,
// for
// --config=tsan. Debian's are not instrumented: without this, whatever they
// guard is a race to it.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <unistd.h>

#include "absl/base/config.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace {

constexpr int kPauseMicroseconds = 50;

// The library's own function, by its name in Abseil 20220623 of Debian 12.
template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
using OfMutex = void (*)(absl::Mutex*);

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static const auto kNext = Next<OfMutex>("_ZN4absl7debian35Mutex4LockEv");
  kNext(this);
  __tsan_acquire(this);
}
void Mutex::Unlock() {
  static const auto kNext = Next<OfMutex>("_ZN4absl7debian35Mutex6UnlockEv");
  __tsan_release(this);
  kNext(this);
}
bool Mutex::TryLock() {
  static const auto kNext =
      Next<bool (*)(Mutex*)>("_ZN4absl7debian35Mutex7TryLockEv");
  if (!kNext(this)) return false;
  __tsan_acquire(this);
  return true;
}
void Mutex::ReaderLock() {
  static const auto kNext =
      Next<OfMutex>("_ZN4absl7debian35Mutex10ReaderLockEv");
  kNext(this);
  __tsan_acquire(this);
}
void Mutex::ReaderUnlock() {
  static const auto kNext =
      Next<OfMutex>("_ZN4absl7debian35Mutex12ReaderUnlockEv");
  __tsan_release(this);
  kNext(this);
}

// Conditions are evaluated by whoever waits: the library would have others do
// so, unseen.
void Mutex::Await(const Condition& condition) {
  while (!condition.Eval()) {
    Unlock();
    usleep(kPauseMicroseconds);
    Lock();
  }
}
bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  while (!condition.Eval()) {
    if (Now() >= deadline) return false;
    Unlock();
    usleep(kPauseMicroseconds);
    Lock();
  }
  return true;
}
bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  return AwaitWithDeadline(condition, Now() + timeout);
}
void Mutex::LockWhen(const Condition& condition) {
  Lock();
  Await(condition);
}
bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  Lock();
  return AwaitWithTimeout(condition, timeout);
}
bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  Lock();
  return AwaitWithDeadline(condition, deadline);
}

void Notification::Notify() {
  static const auto kNext =
      Next<void (*)(Notification*)>("_ZN4absl7debian312Notification6NotifyEv");
  __tsan_release(this);
  kNext(this);
}
void Notification::WaitForNotification() const {
  static const auto kNext = Next<void (*)(const Notification*)>(
      "_ZNK4absl7debian312Notification19WaitForNotificationEv");
  kNext(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

bool BlockingCounter::DecrementCount() {
  static const auto kNext = Next<bool (*)(BlockingCounter*)>(
      "_ZN4absl7debian315BlockingCounter14DecrementCountEv");
  __tsan_release(this);
  return kNext(this);
}
void BlockingCounter::Wait() {
  static const auto kNext = Next<void (*)(BlockingCounter*)>(
      "_ZN4absl7debian315BlockingCounter4WaitEv");
  kNext(this);
  __tsan_acquire(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
