#include "common/tensor/aligned_buffer.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/base/config.h"
#include "gtest/gtest.h"

namespace muster {
namespace {

TEST(AlignedBufferTest, IsAlignedAndZeroed) {
  for (const size_t size : {size_t{1}, size_t{63}, size_t{64}, size_t{1000}}) {
    AlignedBuffer buffer(size);
    EXPECT_EQ(buffer.size_bytes(), size);
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(buffer.data()) % AlignedBuffer::kAlignment,
        0u);
    for (size_t i = 0; i < size; ++i) ASSERT_EQ(buffer.data()[i], 0);
  }
}

TEST(AlignedBufferTest, ALargeOneBeginsAtAHugePage) {
  for (const size_t size :
       {AlignedBuffer::kHugePage - 64, AlignedBuffer::kHugePage,
        2 * AlignedBuffer::kHugePage + 1}) {
    const AlignedBuffer buffer(size);
    EXPECT_EQ(buffer.size_bytes(), size);
    for (size_t i = 0; i < size; i += 1000) ASSERT_EQ(buffer.data()[i], 0);
    EXPECT_EQ(buffer.data()[size - 1], 0);
    if (size < AlignedBuffer::kHugePage) continue;
    EXPECT_EQ(
        reinterpret_cast<uintptr_t>(buffer.data()) % AlignedBuffer::kHugePage,
        0u);
  }
}

TEST(AlignedBufferTest, IsAloneInItsPages) {
  for (const size_t size :
       {size_t{1}, AlignedBuffer::kPage, AlignedBuffer::kPage + 1}) {
    const AlignedBuffer buffer = AlignedBuffer::OfPages(size);
    const AlignedBuffer next = AlignedBuffer::OfPages(1);
    EXPECT_EQ(buffer.size_bytes(), size);
    const auto begin = reinterpret_cast<uintptr_t>(buffer.data());
    const auto other = reinterpret_cast<uintptr_t>(next.data());
    EXPECT_EQ(begin % AlignedBuffer::kPage, 0u);
    EXPECT_EQ(other % AlignedBuffer::kPage, 0u);
    EXPECT_TRUE(other < begin ||
                other - begin >= (size + AlignedBuffer::kPage - 1) /
                                     AlignedBuffer::kPage *
                                     AlignedBuffer::kPage);
  }
}

TEST(AlignedBufferTest, AnEmptyBufferHasNoBytes) {
  const AlignedBuffer none;
  EXPECT_EQ(none.size_bytes(), 0u);
  EXPECT_EQ(none.data(), nullptr);
  const AlignedBuffer empty(0);
  EXPECT_EQ(empty.size_bytes(), 0u);
}

TEST(AlignedBufferTest, IsMadeIfThereIsMemory) {
  for (const size_t size :
       {size_t{0}, size_t{5}, AlignedBuffer::kHugePage + 1}) {
    const std::optional<AlignedBuffer> buffer = AlignedBuffer::TryCreate(size);
    ASSERT_TRUE(buffer.has_value());
    EXPECT_EQ(buffer->size_bytes(), size);
    EXPECT_EQ(buffer->data()[size == 0 ? 0 : size - 1], 0);
  }
}

#if !defined(ABSL_HAVE_ADDRESS_SANITIZER) && \
    !defined(ABSL_HAVE_THREAD_SANITIZER)
// Sanitizers' malloc ends the process.
TEST(AlignedBufferTest, IsNotMadeIfThereIsNone) {
  // More than a process can address.
  EXPECT_FALSE(AlignedBuffer::TryCreate(size_t{1} << 48).has_value());
}
#endif

TEST(AlignedBufferTest, MovesItsMemory) {
  AlignedBuffer a(8);
  a.as<float>()[1] = 2.5f;
  const char* data = a.data();
  const AlignedBuffer b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(b.as<float>()[1], 2.5f);
}

}  // namespace
}  // namespace muster
