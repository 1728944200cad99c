#include "worker/backend/cuda/cuda_streams.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/worker/backend/cuda/failing_calls.h"
#include "tests/worker/backend/cuda/fake_cuda.h"

namespace muster {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Stream = DeviceStreams::Stream;

constexpr uint64_t kSeeds = 20;
constexpr size_t kMemory = 1 << 20;

FakeCuda::Options OneDevice(uint64_t seed) {
  FakeCuda::Options options;
  options.seed = seed;
  options.devices[0].memory_bytes = kMemory;
  return options;
}

// A fake card, its streams, and host memory that is pinned.
struct Card {
  explicit Card(uint64_t seed = 1, int64_t limit = 0)
      : fake(OneDevice(seed)), gpu(calls.Wrap({fake.functions(), {}, {}, {}})) {
    CudaStreams::Options options;
    options.name = "cuda:0";
    options.memory_limit_bytes = limit;
    auto created = CudaStreams::Create(&gpu, options);
    EXPECT_THAT(created, IsOk()) << "seed " << seed;
    streams = *std::move(created);
  }

  std::unique_ptr<DeviceStreams::Event> Event() {
    auto event = streams->CreateEvent();
    EXPECT_THAT(event, IsOk());
    return *std::move(event);
  }
  std::unique_ptr<DeviceStreams::Event> TimedEvent() {
    auto event = streams->CreateTimedEvent();
    EXPECT_THAT(event, IsOk());
    return *std::move(event);
  }
  std::unique_ptr<DeviceStreams::Buffer> Buffer(int64_t bytes) {
    auto buffer = streams->Allocate(bytes, "a test");
    EXPECT_THAT(buffer, IsOk());
    return *std::move(buffer);
  }
  std::unique_ptr<DeviceStreams::Pin> Pin(std::vector<int>* host) {
    auto pin = streams->PinHost(host->data(), host->size() * sizeof(int));
    EXPECT_THAT(pin, IsOk());
    return *std::move(pin);
  }

  FakeCuda fake;
  FailingCalls calls;
  GpuFunctions gpu;
  std::unique_ptr<CudaStreams> streams;
};

// to the device -> compute -> to the host, with an event at each arrow.
class RoundTrip {
 public:
  explicit RoundTrip(Card* card)
      : card_(*card),
        device_(card->Buffer(kBytes)),
        result_(card->Buffer(kBytes)),
        from_pin_(card->Pin(&from)),
        to_pin_(card->Pin(&to)),
        arrived_(card->Event()),
        computed_(card->Event()),
        done_(card->Event()) {}

  void CopyIn() {
    DeviceStreams& streams = *card_.streams;
    EXPECT_THAT(streams.CopyToDevice(device_->data(), from.data(), kBytes),
                IsOk());
    EXPECT_THAT(streams.Record(arrived_.get(), Stream::kToDevice), IsOk());
    EXPECT_THAT(streams.Wait(Stream::kCompute, *arrived_), IsOk());
  }
  void Compute() {
    EXPECT_EQ(card_.fake.Enqueue(card_.streams->compute(),
                                 [this] {
                                   const int* in = AsInts(*device_);
                                   int* out = AsInts(*result_);
                                   for (int i = 0; i < kInts; ++i) {
                                     out[i] = 2 * in[i];
                                   }
                                 }),
              cudaSuccess);
  }
  void CopyOut() {
    DeviceStreams& streams = *card_.streams;
    EXPECT_THAT(streams.Record(computed_.get(), Stream::kCompute), IsOk());
    EXPECT_THAT(streams.Wait(Stream::kToHost, *computed_), IsOk());
    EXPECT_THAT(streams.CopyToHost(to.data(), result_->data(), kBytes), IsOk());
    EXPECT_THAT(streams.Record(done_.get(), Stream::kToHost), IsOk());
  }
  absl::Status Await() { return card_.streams->Await(*done_); }

  static constexpr int kInts = 3;
  static constexpr int64_t kBytes = kInts * sizeof(int);
  std::vector<int> from = {1, 2, 3};
  std::vector<int> to = {0, 0, 0};

 private:
  static int* AsInts(const DeviceStreams::Buffer& buffer) {
    return reinterpret_cast<int*>(buffer.data());
  }

  Card& card_;
  const std::unique_ptr<DeviceStreams::Buffer> device_;
  const std::unique_ptr<DeviceStreams::Buffer> result_;
  const std::unique_ptr<DeviceStreams::Pin> from_pin_;
  const std::unique_ptr<DeviceStreams::Pin> to_pin_;
  const std::unique_ptr<DeviceStreams::Event> arrived_;
  const std::unique_ptr<DeviceStreams::Event> computed_;
  const std::unique_ptr<DeviceStreams::Event> done_;
};

TEST(CudaStreamsTest, EventsOrderTheStreams) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Card card(seed);
    RoundTrip trip(&card);
    trip.CopyIn();
    trip.Compute();
    trip.CopyOut();
    EXPECT_THAT(trip.to, Each(0)) << "done before anybody waited";
    ASSERT_THAT(trip.Await(), IsOk());
    EXPECT_THAT(trip.to, ElementsAre(2, 4, 6));
  }
}

TEST(CudaStreamsTest, AGraphDoesTheSameAgain) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Card card(seed);
    RoundTrip trip(&card);
    ASSERT_THAT(card.streams->BeginCapture(), IsOk());
    trip.Compute();
    const auto graph = card.streams->EndCapture();
    ASSERT_THAT(graph, IsOk());
    for (int i = 1; i <= 3; ++i) {
      trip.from = {i, 10 * i, 100 * i};
      trip.CopyIn();
      ASSERT_THAT(card.streams->Launch(**graph), IsOk());
      trip.CopyOut();
      ASSERT_THAT(trip.Await(), IsOk());
      EXPECT_THAT(trip.to, ElementsAre(2 * i, 20 * i, 200 * i));
    }
    EXPECT_THAT(card.streams->Synchronize(), IsOk());
  }
}

TEST(CudaStreamsTest, WhatACaptureForbidsSpoilsIt) {
  Card card;
  RoundTrip trip(&card);
  const auto event = card.Event();
  ASSERT_THAT(card.streams->Record(event.get(), Stream::kToDevice), IsOk());
  ASSERT_THAT(card.streams->BeginCapture(), IsOk());
  trip.Compute();
  EXPECT_THAT(card.streams->Wait(Stream::kCompute, *event),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("CUDA says")));
  EXPECT_THAT(card.streams->EndCapture(),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("cuda:0: end the capture of a graph"),
                             HasSubstr("CUDA says"))));
  // The streams are of use again.
  trip.CopyIn();
  trip.Compute();
  trip.CopyOut();
  ASSERT_THAT(trip.Await(), IsOk());
  EXPECT_THAT(trip.to, ElementsAre(2, 4, 6));
}

TEST(CudaStreamsTest, TimedEventsTellHowLongTheDeviceTook) {
  Card card;
  const auto begun = card.TimedEvent();
  const auto done = card.TimedEvent();
  for (int i = 0; i < 2; ++i) {
    ASSERT_THAT(card.streams->Record(begun.get(), Stream::kCompute), IsOk());
    const absl::Time before = SystemClock()->Now();
    absl::Time from;
    absl::Time to;
    ASSERT_EQ(card.fake.Enqueue(card.streams->compute(),
                                [&] {
                                  from = SystemClock()->Now();
                                  to = from;
                                  while (to - from < absl::Milliseconds(2)) {
                                    to = SystemClock()->Now();
                                  }
                                }),
              cudaSuccess);
    ASSERT_THAT(card.streams->Record(done.get(), Stream::kCompute), IsOk());
    ASSERT_THAT(card.streams->Await(*done), IsOk());
    const auto elapsed = card.streams->ElapsedTime(*begun, *done);
    ASSERT_THAT(elapsed, IsOk());
    // A float of milliseconds.
    EXPECT_GE(*elapsed, to - from - absl::Microseconds(1));
    EXPECT_LE(*elapsed, SystemClock()->Now() - before);
  }
}

TEST(CudaStreamsTest, TimesThatTheCardDoesNotHaveAreRefused) {
  Card card;
  const auto plain = card.Event();
  const auto begun = card.TimedEvent();
  const auto done = card.TimedEvent();
  const auto expect_refused = [&](const DeviceStreams::Event& from,
                                  const DeviceStreams::Event& to) {
    EXPECT_THAT(
        card.streams->ElapsedTime(from, to),
        StatusIs(absl::StatusCode::kInternal,
                 AllOf(HasSubstr("cuda:0: read the time between two events"),
                       HasSubstr("CUDA says"))));
  };
  ASSERT_THAT(card.streams->Record(begun.get(), Stream::kCompute), IsOk());
  ASSERT_THAT(card.streams->Record(plain.get(), Stream::kCompute), IsOk());
  ASSERT_THAT(card.streams->Synchronize(), IsOk());
  // Never recorded; not done yet; made without timing.
  expect_refused(*begun, *done);
  ASSERT_THAT(card.streams->Record(done.get(), Stream::kCompute), IsOk());
  expect_refused(*begun, *done);
  ASSERT_THAT(card.streams->Synchronize(), IsOk());
  expect_refused(*plain, *done);
  expect_refused(*begun, *plain);
  EXPECT_THAT(card.streams->ElapsedTime(*begun, *done), IsOk());
}

TEST(CudaStreamsTest, MemoryIsCleared) {
  Card card;
  const auto buffer = card.Buffer(sizeof(int) * 4);
  std::vector<int> host = {1, 2, 3, 4};
  const auto pin = card.Pin(&host);
  ASSERT_THAT(card.streams->CopyToHost(host.data(), buffer->data(),
                                       buffer->size_bytes()),
              IsOk());
  ASSERT_THAT(card.streams->Synchronize(), IsOk());
  EXPECT_THAT(host, Each(0));
}

TEST(CudaStreamsTest, OutOfMemorySaysWhatWasAskedForUsedAndFree) {
  Card card;
  const auto held = card.Buffer(1000);
  EXPECT_THAT(
      card.streams->Allocate(2 * kMemory, "activations"),
      StatusIs(absl::StatusCode::kResourceExhausted,
               AllOf(HasSubstr("cuda:0: allocate activations: out of memory: "
                               "asked for 2097152 bytes; used are 1000,"),
                     HasSubstr(" of 1048576 are free"))));
}

TEST(CudaStreamsTest, TheLimitIsKept) {
  Card card(/*seed=*/1, /*limit=*/1000);
  auto first = card.Buffer(600);
  EXPECT_THAT(card.streams->Allocate(500, "gradients"),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("asked for 500 bytes"),
                             HasSubstr("used are 600 of the 1000"),
                             HasSubstr("--gpu_memory_fraction"))));
  first.reset();
  EXPECT_THAT(card.streams->Allocate(1000, "gradients"), IsOk());
}

TEST(CudaStreamsTest, MemoryMayBePinnedTwice) {
  Card card;
  std::vector<int> host(8);
  const auto pin = card.Pin(&host);
  EXPECT_THAT(card.streams->PinHost(host.data(), sizeof(int) * 8), IsOk());
  EXPECT_THAT(card.streams->PinHost(host.data(), 0), IsOk());
}

TEST(CudaStreamsTest, HostMemoryThatIsNotPinnedIsCopiedAllTheSame) {
  Card card;
  const auto buffer = card.Buffer(sizeof(int));
  int host = 7;
  ASSERT_THAT(card.streams->CopyToDevice(buffer->data(), &host, sizeof(host)),
              IsOk());
  host = 0;
  ASSERT_THAT(card.streams->Synchronize(), IsOk());
  ASSERT_THAT(card.streams->CopyToHost(&host, buffer->data(), sizeof(host)),
              IsOk());
  EXPECT_EQ(host, 7);
}

TEST(CudaStreamsTest, MemoryThatCannotBePinnedIsUsedAsItIs) {
  for (const cudaError_t error :
       {cudaErrorNotSupported, cudaErrorInvalidValue, cudaErrorNotPermitted,
        cudaErrorOperatingSystem, cudaErrorMemoryAllocation}) {
    Card card;
    card.gpu.cuda.HostRegister = [error](auto...) { return error; };
    EXPECT_EQ(card.streams->unpinned(), "");
    RoundTrip trip(&card);
    EXPECT_THAT(card.streams->unpinned(),
                HasSubstr("cuda:0: pin 12 bytes of host memory: CUDA says"));
    trip.CopyIn();
    trip.Compute();
    trip.CopyOut();
    ASSERT_THAT(trip.Await(), IsOk());
    EXPECT_THAT(trip.to, ElementsAre(2, 4, 6));
  }
}

TEST(CudaStreamsTest, ADeviceThatIsBrokenPinsNothing) {
  Card card;
  card.gpu.cuda.HostRegister = [](auto...) { return cudaErrorIllegalAddress; };
  std::vector<int> host(8);
  EXPECT_THAT(card.streams->PinHost(host.data(), sizeof(int) * 8),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("cuda:0: pin 32 bytes of host memory")));
}

TEST(CudaStreamsTest, NoSuchDeviceIsUnavailable) {
  FakeCuda fake(OneDevice(1));
  const GpuFunctions gpu = {fake.functions(), {}, {}, {}};
  CudaStreams::Options options;
  options.ordinal = 3;
  options.name = "cuda:3";
  EXPECT_THAT(CudaStreams::Create(&gpu, options),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("cuda:3: use the device: CUDA says")));
}

// Calls that CUDA or its libraries refuse, or carry out on the wrong device.
TEST(CudaStreamsTest, WorkIsForTheCurrentDevice) {
  FakeCuda::Options cards = OneDevice(1);
  cards.devices.resize(2, cards.devices[0]);
  FakeCuda fake(cards);
  const GpuFunctions gpu = {fake.functions(), {}, {}, {}};
  CudaStreams::Options options;
  const auto first = CudaStreams::Create(&gpu, options);
  ASSERT_THAT(first, IsOk());
  const auto event = (*first)->CreateEvent();
  ASSERT_THAT(event, IsOk());
  const auto buffer = (*first)->Allocate(16, "a test");
  ASSERT_THAT(buffer, IsOk());
  options.ordinal = 1;
  const auto second = CudaStreams::Create(&gpu, options);
  ASSERT_THAT(second, IsOk());
  const auto refused = StatusIs(absl::StatusCode::kInternal);
  std::vector<int> host(4);
  EXPECT_THAT((*first)->CopyToDevice((*buffer)->data(), host.data(), 16),
              refused);
  EXPECT_THAT((*first)->Record(event->get(), Stream::kCompute), refused);
  EXPECT_THAT((*first)->Wait(Stream::kCompute, **event), refused);
  EXPECT_THAT((*first)->BeginCapture(), refused);
  EXPECT_THAT((*second)->Record(event->get(), Stream::kCompute), refused);
  ASSERT_THAT((*first)->MakeCurrent(), IsOk());
  EXPECT_THAT((*first)->Record(event->get(), Stream::kCompute), IsOk());
}

// All that this class does, once; the first error ends it.
absl::Status UseAll(const GpuFunctions& gpu) {
  CudaStreams::Options options;
  options.name = "cuda:0";
  ASSIGN_OR_RETURN(const auto created, CudaStreams::Create(&gpu, options));
  CudaStreams& streams = *created;
  std::vector<int> host(4);
  ASSIGN_OR_RETURN(const auto buffer, streams.Allocate(16, "a test"));
  ASSIGN_OR_RETURN(const auto pin, streams.PinHost(host.data(), 16));
  ASSIGN_OR_RETURN(const auto event, streams.CreateEvent());
  ASSIGN_OR_RETURN(const auto timed, streams.CreateTimedEvent());
  RETURN_IF_ERROR(streams.Record(timed.get(), Stream::kToHost));
  RETURN_IF_ERROR(streams.BeginCapture());
  ASSIGN_OR_RETURN(const auto graph, streams.EndCapture());
  RETURN_IF_ERROR(streams.CopyToDevice(buffer->data(), host.data(), 16));
  RETURN_IF_ERROR(streams.Record(event.get(), Stream::kToDevice));
  RETURN_IF_ERROR(streams.Wait(Stream::kCompute, *event));
  RETURN_IF_ERROR(streams.Launch(*graph));
  RETURN_IF_ERROR(streams.Record(event.get(), Stream::kCompute));
  RETURN_IF_ERROR(streams.Wait(Stream::kToHost, *event));
  RETURN_IF_ERROR(streams.CopyToHost(host.data(), buffer->data(), 16));
  RETURN_IF_ERROR(streams.Await(*event));
  RETURN_IF_ERROR(streams.Synchronize());
  return streams.ElapsedTime(*timed, *timed).status();
}

TEST(CudaStreamsTest, EveryCallThatFailsIsToldAndLeavesNothingBehind) {
  FakeCuda fake(OneDevice(1));
  FailingCalls calls;
  const GpuFunctions gpu = calls.Wrap({fake.functions(), {}, {}, {}});
  calls.Reset(0);
  ASSERT_THAT(UseAll(gpu), IsOk());
  const int64_t total = calls.calls();
  ASSERT_GT(total, 20);
  for (int64_t n = 1; n <= total; ++n) {
    calls.Reset(n);
    const absl::Status status = UseAll(gpu);
    SCOPED_TRACE(calls.failed());
    // Nobody is told of a failure while all is given back.
    const bool is_end = absl::StrContains(calls.failed(), "Destroy") ||
                        calls.failed() == "cudaFree" ||
                        calls.failed() == "cudaHostUnregister" ||
                        (calls.failed() == "cudaSetDevice" && n > 1);
    if (is_end) continue;
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kInternal,
                         AllOf(HasSubstr("cuda:0: "), HasSubstr("CUDA says"))));
  }
}

TEST(CudaStreamsTest, NothingIsLeftInTheEnd) {
  FakeCuda fake(OneDevice(1));
  const GpuFunctions gpu = {fake.functions(), {}, {}, {}};
  ASSERT_THAT(UseAll(gpu), IsOk());
  EXPECT_EQ(fake.Leaks(), "");
  EXPECT_EQ(fake.used_bytes(0), 0);
}

}  // namespace
}  // namespace muster
