// glibc's check of longjmp takes a jump to another stack for an error.
#undef _FORTIFY_SOURCE

#include "tests/simulation/fiber.h"

#include <sys/mman.h>

#include <cassert>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace muster {
namespace {

// Stacks that are free, by size; a simulation makes dozens, one after another.
class FreeStacks {
 public:
  FreeStacks() = default;
  ~FreeStacks() {
    for (const auto& [bytes, stacks] : stacks_) {
      for (void* const stack : stacks) munmap(stack, bytes);
    }
  }

  FreeStacks(const FreeStacks&) = delete;
  FreeStacks& operator=(const FreeStacks&) = delete;

  // Null if there is none.
  void* Take(size_t bytes) {
    std::vector<void*>& stacks = stacks_[bytes];
    if (stacks.empty()) return nullptr;
    void* const stack = stacks.back();
    stacks.pop_back();
    return stack;
  }
  void Put(void* stack, size_t bytes) { stacks_[bytes].push_back(stack); }

  // The calling thread's.
  static FreeStacks& Get() {
    thread_local FreeStacks stacks;
    return stacks;
  }

 private:
  std::map<size_t, std::vector<void*>> stacks_;
};

}  // namespace

// Memory for one fiber, used again by the next.
class Fiber::Stack {
 public:
  explicit Stack(size_t bytes)
      : bytes_(bytes), memory_(FreeStacks::Get().Take(bytes)) {
    if (memory_ != nullptr) return;
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    assert(memory_ != MAP_FAILED);
    // Below it: an overflow must not write into another stack.
    mprotect(memory_, 4096, PROT_NONE);
  }
  ~Stack() { FreeStacks::Get().Put(memory_, bytes_); }

  void* memory() const { return memory_; }

 private:
  const size_t bytes_;
  void* memory_;
};

Fiber::Fiber(std::function<void()> body, size_t stack_bytes)
    : body_(std::move(body)), stack_(std::make_unique<Stack>(stack_bytes)) {
  getcontext(&entrance_);
  entrance_.uc_stack.ss_sp = stack_->memory();
  entrance_.uc_stack.ss_size = stack_bytes;
  const auto self = reinterpret_cast<uintptr_t>(this);
  // makecontext passes ints only.
  makecontext(&entrance_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2,
              static_cast<unsigned int>(self),
              static_cast<unsigned int>(self >> 32));
}

Fiber::~Fiber() = default;

void Fiber::Enter(unsigned int low, unsigned int high) {
  const uintptr_t self = (static_cast<uintptr_t>(high) << 32) | low;
  auto* const fiber = reinterpret_cast<Fiber*>(self);
  fiber->body_();
  fiber->body_ = nullptr;
  fiber->done_ = true;
  _longjmp(fiber->resumer_, 1);
}

// A context is entered once, to get onto the new stack: swapcontext would ask
// the kernel for the signal mask each time.
void Fiber::Resume() {
  assert(!done_);
  if (_setjmp(resumer_) != 0) return;
  if (entered_) _longjmp(own_, 1);
  entered_ = true;
  setcontext(&entrance_);
}

void Fiber::Yield() {
  if (_setjmp(own_) == 0) _longjmp(resumer_, 1);
}

}  // namespace muster
