#ifndef TESTS_WORKER_INPUT_FILE_NPY_FIXTURE_H_
#define TESTS_WORKER_INPUT_FILE_NPY_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

// `size` bytes of `value`, the lowest first.
inline std::string Little(uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
  return bytes;
}

// The bytes of `values` as they lie in memory.
template <typename T>
std::string RawBytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()),
                     values.size() * sizeof(T));
}

// An npy file of version `major`.0 with this header and these elements.
inline std::string Npy(const std::string& header, const std::string& elements,
                       int major = 1) {
  return std::string("\x93NUMPY") + static_cast<char>(major) + '\0' +
         Little(header.size(), major == 1 ? 2 : 4) + header + elements;
}

// The header that NumPy writes for this type and shape.
inline std::string NpyText(const std::string& type, const std::string& shape,
                           const std::string& is_fortran = "False") {
  return "{'descr': '" + type + "', 'fortran_order': " + is_fortran +
         ", 'shape': " + shape + ", }      \n";
}

}  // namespace muster

#endif  // TESTS_WORKER_INPUT_FILE_NPY_FIXTURE_H_
