#ifndef TESTS_WORKER_BACKEND_CUDA_FAKE_OBJECTS_H_
#define TESTS_WORKER_BACKEND_CUDA_FAKE_OBJECTS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

namespace muster {

// The objects that a fake library has handed out under the opaque pointers of
// its interface. Knows those that were destroyed from those that never were:
// no address is given twice. Not thread-safe.
template <typename Handle, typename State>
class FakeObjects {
 public:
  Handle Make(State state = State()) {
    auto object = std::make_unique<Object>();
    object->state = std::move(state);
    const Handle handle = reinterpret_cast<Handle>(object.get());
    objects_[handle] = std::move(object);
    ++alive_;
    return handle;
  }

  // Null if it was not made here, or is destroyed.
  State* Find(Handle handle) {
    const auto found = objects_.find(handle);
    const bool is_alive = found != objects_.end() && found->second->is_alive;
    return is_alive ? &found->second->state : nullptr;
  }

  // False if there is none.
  bool Destroy(Handle handle) {
    if (Find(handle) == nullptr) return false;
    objects_[handle]->is_alive = false;
    --alive_;
    return true;
  }

  size_t alive() const { return alive_; }

 private:
  struct Object {
    State state;
    bool is_alive = true;
  };

  std::map<Handle, std::unique_ptr<Object>> objects_;
  size_t alive_ = 0;
};

}  // namespace muster

#endif  // TESTS_WORKER_BACKEND_CUDA_FAKE_OBJECTS_H_
