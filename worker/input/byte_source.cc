#include "worker/input/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace muster {
namespace {

// Deflate makes at most 258 bytes of two bits (zlib's technical notes: 1032:1).
constexpr int64_t kMaxDeflateRatio = 1032;
constexpr size_t kChunkBytes = 64 * 1024;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, CloseFile>;

absl::StatusOr<size_t> ReadSome(std::FILE* file, uint8_t* dst, size_t size) {
  const size_t got = std::fread(dst, 1, size, file);
  if (got < size && std::ferror(file) != 0) {
    return absl::UnavailableError(
        absl::StrCat("read error: ", std::strerror(errno)));
  }
  return got;
}

class PlainSource : public ByteSource {
 public:
  PlainSource(FilePtr file, int64_t file_bytes)
      : file_(std::move(file)), file_bytes_(file_bytes) {}

  absl::StatusOr<size_t> Read(uint8_t* dst, size_t size) override {
    return ReadSome(file_.get(), dst, size);
  }
  int64_t max_bytes() const override { return file_bytes_; }
  const char* format() const override { return "plain"; }

 private:
  const FilePtr file_;
  const int64_t file_bytes_;
};

class GzipSource : public ByteSource {
 public:
  static absl::StatusOr<std::unique_ptr<ByteSource>> Create(
      FilePtr file, int64_t file_bytes) {
    std::unique_ptr<GzipSource> source(
        new GzipSource(std::move(file), file_bytes));
    // 16: a gzip header and trailer, nothing else.
    if (inflateInit2(&source->stream_, MAX_WBITS + 16) != Z_OK) {
      return absl::ResourceExhaustedError("no memory to inflate gzip data");
    }
    return source;
  }

  ~GzipSource() override { inflateEnd(&stream_); }

  absl::StatusOr<size_t> Read(uint8_t* dst, size_t size) override {
    size_t done = 0;
    while (done < size && !ended_) {
      ASSIGN_OR_RETURN(const size_t got, Inflate(dst + done, size - done));
      done += got;
    }
    return done;
  }

  int64_t max_bytes() const override { return file_bytes_ * kMaxDeflateRatio; }
  const char* format() const override { return "gzip"; }

 private:
  GzipSource(FilePtr file, int64_t file_bytes)
      : file_(std::move(file)), file_bytes_(file_bytes), input_(kChunkBytes) {}

  absl::Status Refill() {
    ASSIGN_OR_RETURN(const size_t got,
                     ReadSome(file_.get(), input_.data(), input_.size()));
    if (got == 0) return absl::InvalidArgumentError("gzip data is cut short");
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(got);
    return absl::OkStatus();
  }

  // Inflates once, into at most `size` bytes.
  absl::StatusOr<size_t> Inflate(uint8_t* dst, size_t size) {
    if (stream_.avail_in == 0) RETURN_IF_ERROR(Refill());
    const size_t wanted = std::min(size, kMaxInflateBytes);
    stream_.next_out = dst;
    stream_.avail_out = static_cast<uInt>(wanted);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      ended_ = true;
      RETURN_IF_ERROR(CheckNothingFollows());
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return absl::InvalidArgumentError(
          absl::StrCat("damaged gzip data: ",
                       stream_.msg == nullptr ? "unknown" : stream_.msg));
    }
    return wanted - stream_.avail_out;
  }

  absl::Status CheckNothingFollows() {
    uint8_t next;
    ASSIGN_OR_RETURN(const size_t got, ReadSome(file_.get(), &next, 1));
    if (stream_.avail_in == 0 && got == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "there are bytes after the end of the gzip data");
  }

  // Far below the limit of uInt.
  static constexpr size_t kMaxInflateBytes = size_t{1} << 30;

  const FilePtr file_;
  const int64_t file_bytes_;
  std::vector<uint8_t> input_;
  z_stream stream_ = {};
  bool ended_ = false;
};

absl::StatusOr<int64_t> RegularFileSize(std::FILE* file) {
  struct stat status;
  if (fstat(fileno(file), &status) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot be examined: ", std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError("not a regular file");
  }
  return status.st_size;
}

absl::Status OpenError(int error) {
  const std::string reason = std::strerror(error);
  if (error == ENOENT) return absl::NotFoundError(reason);
  return absl::UnavailableError(absl::StrCat("cannot be opened: ", reason));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::Open(
    const std::string& path) {
  // A fifo without a writer would be waited for.
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return OpenError(errno);
  FilePtr file(fdopen(fd, "rb"));
  if (file == nullptr) {
    const int error = errno;
    close(fd);
    return OpenError(error);
  }
  ASSIGN_OR_RETURN(const int64_t size, RegularFileSize(file.get()));
  uint8_t magic[2];
  ASSIGN_OR_RETURN(const size_t got,
                   ReadSome(file.get(), magic, sizeof(magic)));
  std::rewind(file.get());
  if (got == sizeof(magic) && magic[0] == 0x1f && magic[1] == 0x8b) {
    return GzipSource::Create(std::move(file), size);
  }
  return std::make_unique<PlainSource>(std::move(file), size);
}

}  // namespace muster
