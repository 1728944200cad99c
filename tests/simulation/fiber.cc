#include "tests/simulation/fiber.h"

#include <sys/mman.h>

#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

namespace muster {
namespace {

// Production's deepest calls (text formats, checkpoints) take a fraction of it.
constexpr size_t kStackBytes = size_t{512} << 10;

// Stacks that are free; a simulation makes dozens, one after another.
class FreeStacks {
 public:
  FreeStacks() = default;
  ~FreeStacks() {
    for (void* const stack : stacks_) munmap(stack, kStackBytes);
  }

  FreeStacks(const FreeStacks&) = delete;
  FreeStacks& operator=(const FreeStacks&) = delete;

  // Null if there is none.
  void* Take() {
    if (stacks_.empty()) return nullptr;
    void* const stack = stacks_.back();
    stacks_.pop_back();
    return stack;
  }
  void Put(void* stack) { stacks_.push_back(stack); }

  // The calling thread's.
  static FreeStacks& Get() {
    thread_local FreeStacks stacks;
    return stacks;
  }

 private:
  std::vector<void*> stacks_;
};

}  // namespace

// Memory for one fiber, used again by the next.
class Fiber::Stack {
 public:
  Stack() : memory_(FreeStacks::Get().Take()) {
    if (memory_ != nullptr) return;
    memory_ = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    assert(memory_ != MAP_FAILED);
    // Below it: an overflow must not write into another stack.
    mprotect(memory_, 4096, PROT_NONE);
  }
  ~Stack() { FreeStacks::Get().Put(memory_); }

  void* memory() const { return memory_; }

 private:
  void* memory_;
};

Fiber::Fiber(std::function<void()> body)
    : body_(std::move(body)), stack_(std::make_unique<Stack>()) {
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_->memory();
  own_.uc_stack.ss_size = kStackBytes;
  own_.uc_link = &resumer_;
  const auto self = reinterpret_cast<uintptr_t>(this);
  // makecontext passes ints only.
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::Enter), 2,
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
}

void Fiber::Resume() {
  assert(!done_);
  swapcontext(&resumer_, &own_);
}

void Fiber::Yield() { swapcontext(&own_, &resumer_); }

}  // namespace muster
