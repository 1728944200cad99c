#ifndef TESTS_WORKER_INPUT_FILE_NPY_FIXTURE_H_
#define TESTS_WORKER_INPUT_FILE_NPY_FIXTURE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace muster {

// `size` bytes of `value`, the lowest first.
inline std::string Little(uint64_t value, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i) {
    bytes.push_back(static_cast<char>(i < 8 ? value >> (8 * i) & 0xff : 0));
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

// An npz file of these arrays, by name, which are whole npy files and stored.
inline std::string Npz(
    const std::vector<std::pair<std::string, std::string>>& arrays) {
  std::string members;
  std::string directory;
  for (const auto& array : arrays) {
    const std::string name = array.first + ".npy";
    // Version, flags, method, time and checksum, which is not looked at.
    const std::string head =
        Little(20, 2) + Little(0, 12) + Little(array.second.size(), 4) +
        Little(array.second.size(), 4) + Little(name.size(), 2) + Little(0, 2);
    directory += Little(0x02014b50, 4) + Little(20, 2) + head + Little(0, 10) +
                 Little(members.size(), 4) + name;
    members += Little(0x04034b50, 4) + head + name + array.second;
  }
  return members + directory + Little(0x06054b50, 4) + Little(0, 4) +
         Little(arrays.size(), 2) + Little(arrays.size(), 2) +
         Little(directory.size(), 4) + Little(members.size(), 4) + Little(0, 2);
}

}  // namespace muster

#endif  // TESTS_WORKER_INPUT_FILE_NPY_FIXTURE_H_
