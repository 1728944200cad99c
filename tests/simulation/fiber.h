#ifndef TESTS_SIMULATION_FIBER_H_
#define TESTS_SIMULATION_FIBER_H_

#include <ucontext.h>

#include <functional>
#include <memory>

namespace muster {

// A function with a stack of its own that can be left in the middle and gone on
// with later: a thread of the simulation, or of a kernel on the host. All
// fibers of one run are made, run and destroyed on one real thread, one at a
// time, so that nothing depends on the system's scheduler.
class Fiber {
 public:
  explicit Fiber(std::function<void()> body);
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
  ucontext_t own_;
  ucontext_t resumer_;
  bool done_ = false;
};

}  // namespace muster

#endif  // TESTS_SIMULATION_FIBER_H_
