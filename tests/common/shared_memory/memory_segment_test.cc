#include "common/shared_memory/memory_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/shared_memory/open_descriptors.h"
#include "tests/testing/status_matchers.h"

namespace muster {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr size_t kBytes = 3 * 4096;

FileDescriptor Copy(const MemorySegment& segment) {
  return FileDescriptor(dup(segment.fd()));
}

TEST(MemorySegmentTest, IsTheSameMemoryForBoth) {
  const absl::StatusOr<MemorySegment> made = MemorySegment::Create(kBytes);
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(made->data()[kBytes - 1], 0);
  const absl::StatusOr<MemorySegment> adopted =
      MemorySegment::Adopt(Copy(*made), kBytes);
  ASSERT_THAT(adopted, IsOk());
  EXPECT_NE(made->data(), adopted->data());
  std::strcpy(made->data(), "there");
  std::strcpy(adopted->data() + kBytes - 5, "back");
  EXPECT_STREQ(adopted->data(), "there");
  EXPECT_STREQ(made->data() + kBytes - 5, "back");
}

TEST(MemorySegmentTest, NobodyCanChangeItsSize) {
  const absl::StatusOr<MemorySegment> made = MemorySegment::Create(kBytes);
  ASSERT_THAT(made, IsOk());
  for (const off_t size : {0, 4096, 1 << 20}) {
    EXPECT_EQ(ftruncate(made->fd(), size), -1);
    EXPECT_EQ(errno, EPERM) << size;
  }
  EXPECT_EQ(fcntl(made->fd(), F_ADD_SEALS, F_SEAL_WRITE), -1);
}

TEST(MemorySegmentTest, OthersCannotWriteWhatIsForReading) {
  using Access = MemorySegment::Access;
  const absl::StatusOr<MemorySegment> made =
      MemorySegment::Create(kBytes, Access::kRead);
  ASSERT_THAT(made, IsOk());
  const absl::StatusOr<MemorySegment> adopted =
      MemorySegment::Adopt(Copy(*made), kBytes, Access::kRead);
  ASSERT_THAT(adopted, IsOk());
  std::strcpy(made->data(), "there");
  EXPECT_STREQ(adopted->data(), "there");
  EXPECT_THAT(
      MemorySegment::Adopt(Copy(*made), kBytes),
      StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("mmap")));
  EXPECT_EQ(mprotect(adopted->data(), kBytes, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(pwrite(made->fd(), "x", 1, 0), -1);
  EXPECT_EQ(ftruncate(made->fd(), 0), -1);
}

// The sum of one field of /proc/self/smaps over all segments, in KB.
int64_t MappedKb(const std::string& field) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  int64_t sum = 0;
  bool is_ours = false;
  while (std::getline(maps, line)) {
    if (line.find("memfd:muster") != std::string::npos) is_ours = true;
    if (is_ours && line.rfind(field + ":", 0) == 0) {
      sum += std::stoll(line.substr(field.size() + 1));
    }
    if (line.rfind("VmFlags", 0) == 0) is_ours = false;
  }
  return sum;
}

TEST(MemorySegmentTest, LargeOnesAreInHugePagesWhereThereAreSuch) {
  constexpr size_t kLarge = (size_t{4} << 20) + 5;
  {
    absl::StatusOr<MemorySegment> made = MemorySegment::Create(kLarge);
    ASSERT_THAT(made, IsOk());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(made->data()) % (2 << 20), 0);
    made->data()[kLarge - 1] = 'x';
    const absl::StatusOr<MemorySegment> adopted =
        MemorySegment::Adopt(Copy(*made), kLarge);
    ASSERT_THAT(adopted, IsOk());
    EXPECT_EQ(adopted->data()[kLarge - 1], 'x');
    // Each whole, and nothing beside it.
    EXPECT_EQ(MappedKb("Size"), 2 * (4096 + 4));
    EXPECT_THAT(MappedKb("ShmemPmdMapped"), AnyOf(0, 2 * 4096));
  }
  EXPECT_EQ(MappedKb("Size"), 0);
}

TEST(MemorySegmentTest, SizesThatMakeNoSenseAreRefused) {
  for (const size_t size :
       {size_t{0}, MemorySegment::kMaxBytes + 1, SIZE_MAX}) {
    EXPECT_THAT(MemorySegment::Create(size),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_THAT(MemorySegment::Adopt(FileDescriptor(), size),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(MemorySegmentTest, AnotherSizeIsRefusedBeforeItIsMapped) {
  const absl::StatusOr<MemorySegment> made = MemorySegment::Create(kBytes);
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(MemorySegment::Adopt(Copy(*made), kBytes + 4096),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 12288 bytes; wanted 16384")));
  // One that would fill the machine if its pages were touched.
  FileDescriptor huge(memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(huge.get(), off_t{1} << 40), 0);
  EXPECT_THAT(MemorySegment::Adopt(std::move(huge), kBytes),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 1099511627776 bytes")));
}

TEST(MemorySegmentTest, WhatCouldShrinkIsRefused) {
  FileDescriptor open(memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(open.get(), kBytes), 0);
  EXPECT_THAT(
      MemorySegment::Adopt(std::move(open), kBytes),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not sealed")));
}

TEST(MemorySegmentTest, WhatIsNoMemoryIsRefused) {
  EXPECT_THAT(MemorySegment::Adopt(FileDescriptor(), kBytes),
              StatusIs(absl::StatusCode::kInvalidArgument));
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor writer(ends[1]);
  EXPECT_THAT(MemorySegment::Adopt(FileDescriptor(ends[0]), kBytes),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(MemorySegmentTest, LeavesNothingOpen) {
  const int before = OpenDescriptors();
  for (int i = 0; i < 100; ++i) {
    absl::StatusOr<MemorySegment> made = MemorySegment::Create(kBytes);
    ASSERT_THAT(made, IsOk());
    ASSERT_THAT(MemorySegment::Adopt(Copy(*made), kBytes), IsOk());
    ASSERT_FALSE(MemorySegment::Adopt(Copy(*made), kBytes + 1).ok());
    MemorySegment moved = *std::move(made);
    moved = *MemorySegment::Create(kBytes);
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST(MemorySegmentTest, WithoutDescriptorsItIsAnError) {
  const NoDescriptorsLeft none;
  EXPECT_THAT(MemorySegment::Create(kBytes),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("memfd_create")));
}

}  // namespace
}  // namespace muster
