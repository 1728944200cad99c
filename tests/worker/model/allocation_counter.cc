#include "tests/worker/model/allocation_counter.h"

#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "tests/testing/allocation_pause.h"

namespace {

// The largest allocation that oneDNN may make inside a call. Its matrix product
// packs operands into memory of its own: 1.6 MB is the most in the zoo (2.6.3);
// dense1's weights would be 12.8 MB.
constexpr size_t kMaxLibraryBytes = 4 << 20;

std::atomic<bool> counting{false};
// By our code, or large.
std::atomic<int> allocations{0};
// The largest of them, and whether oneDNN asked for it.
std::atomic<size_t> largest_bytes{0};
std::atomic<bool> largest_by_library{false};
uintptr_t library_begin = 0;
uintptr_t library_end = 0;

// Finds where oneDNN is mapped.
int FindLibrary(dl_phdr_info* info, size_t /*size*/, void* /*context*/) {
  if (std::strstr(info->dlpi_name, "/libdnnl.so") == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (library_begin == 0) library_begin = begin;
    library_end = begin + segment.p_memsz;
  }
  return 1;
}

void Count(const void* caller, size_t size) {
  if (!counting.load(std::memory_order_relaxed)) return;
  if (muster::AllocationPause::is_on()) return;
  const uintptr_t address = reinterpret_cast<uintptr_t>(caller);
  const bool by_library = address >= library_begin && address < library_end;
  if (by_library && size <= kMaxLibraryBytes) return;
  ++allocations;
  if (size <= largest_bytes) return;
  largest_bytes = size;
  largest_by_library = by_library;
}

}  // namespace

namespace muster {

void StartCountingAllocations() {
  dl_iterate_phdr(&FindLibrary, nullptr);
  allocations = 0;
  largest_bytes = 0;
  counting = true;
}

int StopCountingAllocations() {
  counting = false;
  return allocations;
}

bool CanCountAllocations() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

std::string LargestAllocation() {
  return std::to_string(largest_bytes) + " bytes by " +
         (largest_by_library ? "oneDNN" : "others");
}

}  // namespace muster

// Sanitizers replace these themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  Count(__builtin_return_address(0), size);
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  Count(__builtin_return_address(0), count * size);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  Count(__builtin_return_address(0), size);
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  Count(__builtin_return_address(0), size);
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  Count(__builtin_return_address(0), size);
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  Count(__builtin_return_address(0), size);
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}

void* operator new(size_t size) {
  Count(__builtin_return_address(0), size);
  void* memory = __libc_malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}
void* operator new[](size_t size) {
  Count(__builtin_return_address(0), size);
  void* memory = __libc_malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, size_t /*size*/) noexcept {
  std::free(memory);
}
#endif
