#include "common/process/freed_memory.h"

#include <malloc.h>

namespace muster {

void KeepFreedMemory() {
  // Both: setting one freezes the other at 128 KB.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

}  // namespace muster
