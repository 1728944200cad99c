#include "tests/worker/backend/fake_streams.h"

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "common/tensor/aligned_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::HasSubstr;
using Stream = DeviceStreams::Stream;

constexpr int64_t kBytes = 2 * sizeof(float);

// A device with memory for two floats, and two of the host that are pinned.
class FakeStreamsTest : public testing::Test {
 protected:
  FakeStreamsTest() {
    EXPECT_THAT(streams_.MakeCurrent(), IsOk());
    device_ = *streams_.Allocate(kBytes, "two floats");
    pin_ = *streams_.PinHost(host_.data(), kBytes);
    sent_ = *streams_.CreateEvent();
    computed_ = *streams_.CreateEvent();
    arrived_ = *streams_.CreateEvent();
  }

  float* device() { return reinterpret_cast<float*>(device_->data()); }
  float* host() { return host_.as<float>(); }
  absl::Status Double() {
    return streams_.Compute([this] {
      device()[0] *= 2;
      return absl::OkStatus();
    });
  }
  // device = host, doubled, to host.
  void EnqueueAll() {
    EXPECT_THAT(streams_.CopyToDevice(device(), host(), kBytes), IsOk());
    EXPECT_THAT(streams_.Record(sent_.get(), Stream::kToDevice), IsOk());
    EXPECT_THAT(streams_.Wait(Stream::kCompute, *sent_), IsOk());
    EXPECT_THAT(Double(), IsOk());
    Fetch();
  }
  void Fetch() {
    EXPECT_THAT(streams_.Record(computed_.get(), Stream::kCompute), IsOk());
    EXPECT_THAT(streams_.Wait(Stream::kToHost, *computed_), IsOk());
    EXPECT_THAT(streams_.CopyToHost(host(), device(), kBytes), IsOk());
    EXPECT_THAT(streams_.Record(arrived_.get(), Stream::kToHost), IsOk());
  }

  FakeStreams streams_{/*seed=*/1};
  AlignedBuffer host_ = AlignedBuffer::OfPages(kBytes);
  std::unique_ptr<DeviceStreams::Buffer> device_;
  std::unique_ptr<DeviceStreams::Pin> pin_;
  std::unique_ptr<DeviceStreams::Event> sent_;
  std::unique_ptr<DeviceStreams::Event> computed_;
  std::unique_ptr<DeviceStreams::Event> arrived_;
};

TEST_F(FakeStreamsTest, DoesNothingBeforeItIsAwaited) {
  host()[0] = 3;
  EnqueueAll();
  EXPECT_EQ(host()[0], 3);
  EXPECT_EQ(streams_.computed(), 0);
  EXPECT_THAT(streams_.Await(*arrived_), IsOk());
  EXPECT_EQ(host()[0], 6);
  EXPECT_EQ(streams_.computed(), 1);
}

TEST_F(FakeStreamsTest, AMissingEventShows) {
  streams_.SetWeight(Stream::kToDevice, 0);
  host()[0] = 3;
  EXPECT_THAT(streams_.CopyToDevice(device(), host(), kBytes), IsOk());
  EXPECT_THAT(Double(), IsOk());
  EXPECT_THAT(streams_.Synchronize(), IsOk());
  EXPECT_EQ(device()[0], 3) << "doubled before it was there";
}

TEST_F(FakeStreamsTest, TheHostsMemoryIsReadWhenTheCopyIsDone) {
  host()[0] = 3;
  EnqueueAll();
  host()[0] = 4;
  EXPECT_THAT(streams_.Synchronize(), IsOk());
  EXPECT_EQ(host()[0], 8);
}

TEST_F(FakeStreamsTest, ACopyOfMemoryThatIsNotPinnedIsDoneAtOnce) {
  float value[2] = {3, 0};
  EXPECT_THAT(streams_.CopyToDevice(device(), value, kBytes), IsOk());
  value[0] = 4;
  EXPECT_THAT(streams_.CopyToHost(value, device(), kBytes), IsOk());
  EXPECT_EQ(value[0], 3);
}

TEST_F(FakeStreamsTest, RefusesACopyOfPagesThatArePinnedInPart) {
  AlignedBuffer pages = AlignedBuffer::OfPages(2 * AlignedBuffer::kPage);
  const auto pin = streams_.PinHost(pages.data(), 1);
  const auto memory = streams_.Allocate(2 * AlignedBuffer::kPage, "pages");
  EXPECT_THAT(streams_.CopyToDevice((*memory)->data(), pages.data(),
                                    2 * AlignedBuffer::kPage),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("part")));
}

TEST_F(FakeStreamsTest, RefusesAPinInMidPage) {
  EXPECT_THAT(streams_.PinHost(host_.data() + 64, 1),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("page")));
}

TEST_F(FakeStreamsTest, AGraphIsDoneByEachLaunch) {
  ASSERT_THAT(streams_.BeginCapture(), IsOk());
  ASSERT_THAT(Double(), IsOk());
  const auto graph = streams_.EndCapture();
  ASSERT_THAT(graph, IsOk());
  ASSERT_THAT(streams_.Synchronize(), IsOk());
  EXPECT_EQ(streams_.computed(), 0) << "captured, not done";
  device()[0] = 1;
  for (const float wanted : {2.0f, 4.0f, 8.0f}) {
    ASSERT_THAT(streams_.Launch(**graph), IsOk());
    Fetch();
    ASSERT_THAT(streams_.Await(*arrived_), IsOk());
    EXPECT_EQ(host()[0], wanted);
  }
  EXPECT_EQ(streams_.launches(), 3);
}

TEST_F(FakeStreamsTest, RefusesInACaptureAllButPrimitives) {
  EnqueueAll();
  const std::function<absl::Status()> refused[] = {
      [&] { return streams_.Await(*arrived_); },
      [&] { return streams_.Allocate(4, "x").status(); },
      [&] { return streams_.Record(computed_.get(), Stream::kCompute); },
      [&] { return streams_.Record(sent_.get(), Stream::kToDevice); },
      [&] { return streams_.Wait(Stream::kCompute, *sent_); },
      [&] { return streams_.CopyToHost(host(), device(), kBytes); },
      [&] { return streams_.CopyToDevice(device(), host(), kBytes); },
      [&] { return streams_.CreateTimedEvent().status(); },
      [&] { return streams_.ElapsedTime(*sent_, *arrived_).status(); },
      [&] { return streams_.BeginCapture(); },
      [&] { return streams_.Synchronize(); }};
  for (const auto& call : refused) {
    ASSERT_THAT(streams_.BeginCapture(), IsOk());
    const absl::Status status = call();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                                 HasSubstr("in a capture")));
    EXPECT_EQ(streams_.EndCapture().status(), status);
  }
  EXPECT_THAT(streams_.Synchronize(), IsOk());
}

TEST_F(FakeStreamsTest, RefusesEventsThatWereNeverRecorded) {
  EXPECT_THAT(streams_.Await(*arrived_),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("never")));
  EXPECT_THAT(streams_.Wait(Stream::kCompute, *sent_),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("never")));
}

TEST_F(FakeStreamsTest, TimePassesWithTheWork) {
  const auto begun = streams_.CreateTimedEvent();
  const auto done = streams_.CreateTimedEvent();
  ASSERT_THAT(begun, IsOk());
  ASSERT_THAT(done, IsOk());
  for (const int works : {3, 1}) {
    ASSERT_THAT(streams_.Record(begun->get(), Stream::kCompute), IsOk());
    for (int i = 0; i < works; ++i) ASSERT_THAT(Double(), IsOk());
    ASSERT_THAT(streams_.Record(done->get(), Stream::kCompute), IsOk());
    ASSERT_THAT(streams_.Await(**done), IsOk());
    EXPECT_THAT(streams_.ElapsedTime(**begun, **done),
                IsOkAndHolds(works * FakeStreams::kWorkTime));
  }
  EXPECT_EQ(streams_.timed_records(), 4);
}

TEST_F(FakeStreamsTest, RefusesTimesThatItDoesNotHave) {
  const auto begun = *streams_.CreateTimedEvent();
  const auto done = *streams_.CreateTimedEvent();
  const auto expect_refused = [&](const DeviceStreams::Event& from,
                                  const DeviceStreams::Event& to,
                                  const std::string& why) {
    EXPECT_THAT(streams_.ElapsedTime(from, to),
                StatusIs(absl::StatusCode::kInternal, HasSubstr(why)));
  };
  ASSERT_THAT(streams_.Record(begun.get(), Stream::kCompute), IsOk());
  ASSERT_THAT(streams_.Record(sent_.get(), Stream::kCompute), IsOk());
  ASSERT_THAT(streams_.Synchronize(), IsOk());
  expect_refused(*begun, *done, "has not come");
  ASSERT_THAT(Double(), IsOk());
  ASSERT_THAT(streams_.Record(done.get(), Stream::kCompute), IsOk());
  expect_refused(*begun, *done, "has not come");
  ASSERT_THAT(streams_.Synchronize(), IsOk());
  expect_refused(*sent_, *done, "without timing");
  expect_refused(*done, *begun, "came last");
}

TEST_F(FakeStreamsTest, FreedMemoryIsPoisonedAndRefused) {
  EnqueueAll();
  const float* const freed = device();
  device_.reset();
  EXPECT_TRUE(std::isnan(*freed));
  EXPECT_THAT(streams_.CopyToHost(host(), freed, kBytes),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("freed")));
  EXPECT_THAT(streams_.Await(*arrived_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("freed")));
}

TEST_F(FakeStreamsTest, RefusesAThreadOfAnotherDevice) {
  absl::Status status;
  std::thread([&] { status = streams_.Synchronize(); }).join();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal,
                               HasSubstr("another device")));
}

TEST_F(FakeStreamsTest, ACallFailsOnce) {
  streams_.FailCall(2);
  EXPECT_THAT(Double(), IsOk());
  EXPECT_THAT(Double(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("Execute")));
  EXPECT_THAT(streams_.Synchronize(), IsOk());
  EXPECT_EQ(streams_.computed(), 1);
}

TEST_F(FakeStreamsTest, WorkThatFailsIsTheErrorOfEveryCall) {
  EnqueueAll();
  streams_.FailWork(2);
  const absl::Status status = streams_.Await(*arrived_);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal));
  EXPECT_EQ(streams_.Synchronize(), status);
  EXPECT_EQ(Double(), status);
}

}  // namespace
}  // namespace muster
