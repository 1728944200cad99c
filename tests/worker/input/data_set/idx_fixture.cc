#include "tests/worker/input/data_set/idx_fixture.h"

#include <stdlib.h>
#include <zlib.h>

#include <cassert>
#include <cstdio>
#include <fstream>

#include "gtest/gtest.h"

namespace muster {

std::string MakeTempDir() {
  std::string pattern = testing::TempDir() + "/input_XXXXXX";
  const char* dir = mkdtemp(pattern.data());
  assert(dir != nullptr);
  return dir;
}

std::string IdxHeader(uint32_t magic, const std::vector<uint32_t>& dims) {
  std::string header;
  const auto append = [&header](uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      header.push_back(static_cast<char>(value >> shift & 0xff));
    }
  };
  append(magic);
  for (const uint32_t dim : dims) append(dim);
  return header;
}

std::string Gzip(const std::string& data) {
  z_stream stream = {};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16,
               /*memLevel=*/9, Z_DEFAULT_STRATEGY);
  std::string result(deflateBound(&stream, data.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const int outcome = deflate(&stream, Z_FINISH);
  assert(outcome == Z_STREAM_END);
  static_cast<void>(outcome);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

std::string WriteFile(const std::string& dir, const std::string& name,
                      const std::string& content) {
  const std::string path = dir + "/" + name;
  // A file that is cut to nothing and written anew is flushed by ext4: 2 ms.
  std::remove(path.c_str());
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  assert(file.good());
  return path;
}

namespace {

std::string Images(int count) {
  std::string data = IdxHeader(2051, {static_cast<uint32_t>(count), 2, 3});
  for (int i = 0; i < count; ++i) {
    for (int p = 0; p < 6; ++p) data.push_back(static_cast<char>(10 * i + p));
  }
  return data;
}

std::string Labels(int count) {
  std::string data = IdxHeader(2049, {static_cast<uint32_t>(count)});
  for (int i = 0; i < count; ++i) data.push_back(static_cast<char>(i % 3));
  return data;
}

}  // namespace

void WriteDataSet(const std::string& dir, int train, int test) {
  WriteFile(dir, "train-images-idx3-ubyte", Images(train));
  WriteFile(dir, "train-labels-idx1-ubyte", Labels(train));
  WriteFile(dir, "t10k-images-idx3-ubyte.gz", Gzip(Images(test)));
  WriteFile(dir, "t10k-labels-idx1-ubyte.gz", Gzip(Labels(test)));
}

}  // namespace muster
