// Makes IDX files, good and bad, in the test's own folder.
#ifndef TESTS_WORKER_INPUT_DATA_SET_IDX_FIXTURE_H_
#define TESTS_WORKER_INPUT_DATA_SET_IDX_FIXTURE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

// A new empty folder that the test may fill.
std::string MakeTempDir();

// The header of an IDX file: magic number and dimensions, big-endian.
std::string IdxHeader(uint32_t magic, const std::vector<uint32_t>& dims);

// `data` as one gzip member.
std::string Gzip(const std::string& data);

// Writes a file and returns its path.
std::string WriteFile(const std::string& dir, const std::string& name,
                      const std::string& content);

// Writes a data set of four files: `train` and `test` images of 2 x 3 pixels,
// pixel p of image i being 10 * i + p, with label i % 3.
void WriteDataSet(const std::string& dir, int train, int test);

}  // namespace muster

#endif  // TESTS_WORKER_INPUT_DATA_SET_IDX_FIXTURE_H_
