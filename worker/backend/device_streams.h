#ifndef WORKER_BACKEND_DEVICE_STREAMS_H_
#define WORKER_BACKEND_DEVICE_STREAMS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace muster {

// The memory of one device, and the order of what it does. Work is put into one
// of three streams and the call returns; a stream does its work in order, and
// streams run side by side but for the events that they wait for. A primitive
// puts its work into kCompute.
//
// A capture makes a graph of what primitives put into kCompute, which then is
// not done: Launch does all of it with one call, again and again.
//
// Errors of every call: Internal with the operation and the library's reason,
// also for work that was put into a stream earlier and has failed since.
// One thread at a time, which calls MakeCurrent first.
class DeviceStreams {
 public:
  enum class Stream { kCompute, kToDevice, kToHost };

  // Device memory, freed when it is destroyed.
  class Buffer {
   public:
    virtual ~Buffer() = default;
    virtual char* data() const = 0;
    virtual int64_t size_bytes() const = 0;
  };
  // Host memory that the device copies from and to without a stop; until it is
  // destroyed.
  class Pin {
   public:
    virtual ~Pin() = default;
  };
  // A place in a stream: everything before the last Record.
  class Event {
   public:
    virtual ~Event() = default;
  };
  class Graph {
   public:
    virtual ~Graph() = default;
  };

  virtual ~DeviceStreams() = default;

  // The calling thread's work is for this device from now on.
  virtual absl::Status MakeCurrent() = 0;

  // Zeroed, aligned to 256 bytes; not for the step loop. `what` is for the
  // message. Errors: ResourceExhausted with the bytes asked for, used and free.
  virtual absl::StatusOr<std::unique_ptr<Buffer>> Allocate(
      int64_t bytes, absl::string_view what) = 0;
  // Pins memory that outlives the pin and is alone in its pages, the first of
  // which it begins (AlignedBuffer::OfPages): pages are pinned, each once. Pins
  // nothing that is pinned already, and nothing where the system does not let
  // it (unpinned()): copies are slower then, and calls wait for them.
  virtual absl::StatusOr<std::unique_ptr<Pin>> PinHost(void* memory,
                                                       int64_t bytes) = 0;
  // Why PinHost last pinned nothing; empty: the system has always let it.
  virtual std::string unpinned() const { return ""; }
  virtual absl::StatusOr<std::unique_ptr<Event>> CreateEvent() = 0;
  // One of which the device notes the time when it comes, which costs a little.
  virtual absl::StatusOr<std::unique_ptr<Event>> CreateTimedEvent() = 0;

  // Put into kToDevice and kToHost. The host's memory stays as it is until the
  // copy is done; memory that is not pinned may make the call wait.
  virtual absl::Status CopyToDevice(void* device, const void* host,
                                    int64_t bytes) = 0;
  virtual absl::Status CopyToHost(void* host, const void* device,
                                  int64_t bytes) = 0;

  virtual absl::Status Record(Event* event, Stream stream) = 0;
  // Work that is put into `stream` from now on starts when `event`, as it was
  // last recorded, has come.
  virtual absl::Status Wait(Stream stream, const Event& event) = 0;
  // The same for the host.
  virtual absl::Status Await(const Event& event) = 0;
  // From one event to the other, as the device saw them. REQUIRES: both are
  // timed; as they were last recorded they have come, `from` not after `to`.
  virtual absl::StatusOr<absl::Duration> ElapsedTime(const Event& from,
                                                     const Event& to) = 0;

  // From one to the other primitives are executed and nothing else is called.
  // EndCapture ends a capture in which a call has failed, too.
  virtual absl::Status BeginCapture() = 0;
  virtual absl::StatusOr<std::unique_ptr<Graph>> EndCapture() = 0;
  // Put into kCompute.
  virtual absl::Status Launch(const Graph& graph) = 0;

  // Waits for all three streams; not for the step loop.
  virtual absl::Status Synchronize() = 0;
};

}  // namespace muster

#endif  // WORKER_BACKEND_DEVICE_STREAMS_H_
