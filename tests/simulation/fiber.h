#ifndef TESTS_SIMULATION_FIBER_H_
#define TESTS_SIMULATION_FIBER_H_

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace muster {

// A function with a stack of its own that can be left in the middle and gone on
// with later: a thread of the simulation, or of a kernel on the host. All
// fibers of one run are made, run and destroyed on one real thread, one at a
// time, so that nothing depends on the system's scheduler.
class Fiber {
 public:
  // Production's deepest calls (text formats, checkpoints) take a fraction of
  // it.
  static constexpr size_t kStackBytes = size_t{512} << 10;

  // `stack_bytes`: whole pages, of which the lowest is a guard.
  explicit Fiber(std::function<void()> body, size_t stack_bytes = kStackBytes);
  // REQUIRES: done(), or never resumed.
  ~Fiber();

  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs it until it yields or ends. REQUIRES: !done(), not called in a fiber.
  void Resume();
  // Goes back to who has resumed this fiber. REQUIRES: called in it.
  void Yield();

  bool done() const { return done_; }

 private:
  class Stack;
  static void Enter(unsigned int low, unsigned int high);

  std::function<void()> body_;
  std::unique_ptr<Stack> stack_;
  ucontext_t entrance_;
  bool entered_ = false;
  jmp_buf own_;
  jmp_buf resumer_;
  bool done_ = false;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_FIBER_H_
