// absl::Mutex as ThreadSanitizer sees it, for --config=tsan. Debian's Abseil is
// not instrumented: without this, whatever a Mutex guards is a race to it.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <unistd.h>

#include "absl/base/config.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace {

constexpr int kPauseMicroseconds = 50;

// The library's own function, by its name in Abseil 20220623 of Debian 12.
using Function = void (*)(absl::Mutex*);
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static const Function kNext = Next("_ZN4absl7debian35Mutex4LockEv");
  kNext(this);
  __tsan_acquire(this);
}
void Mutex::Unlock() {
  static const Function kNext = Next("_ZN4absl7debian35Mutex6UnlockEv");
  __tsan_release(this);
  kNext(this);
}
void Mutex::ReaderLock() {
  static const Function kNext = Next("_ZN4absl7debian35Mutex10ReaderLockEv");
  kNext(this);
  __tsan_acquire(this);
}
void Mutex::ReaderUnlock() {
  static const Function kNext = Next("_ZN4absl7debian35Mutex12ReaderUnlockEv");
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

ABSL_NAMESPACE_END
}  // namespace absl
