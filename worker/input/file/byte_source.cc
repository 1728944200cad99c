#include "worker/input/file/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/process/memory_limit.h"

namespace muster {
namespace {

absl::Status OpenError(int error) {
  const std::string reason = std::strerror(error);
  if (error == ENOENT) return absl::NotFoundError(reason);
  return absl::UnavailableError(absl::StrCat("cannot be opened: ", reason));
}

absl::StatusOr<int64_t> RegularFileSize(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot be examined: ", std::strerror(errno)));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError("not a regular file");
  }
  return status.st_size;
}

constexpr uint8_t kGzipMagic[] = {0x1f, 0x8b};

absl::StatusOr<bool> BeginsAsGzip(int fd) {
  uint8_t magic[2];
  const ssize_t got = pread(fd, magic, sizeof(magic), 0);
  if (got < 0) {
    return absl::UnavailableError(
        absl::StrCat("read error: ", std::strerror(errno)));
  }
  return got == sizeof(magic) && magic[0] == kGzipMagic[0] &&
         magic[1] == kGzipMagic[1];
}

// Deflate makes at most 258 bytes of two bits (zlib's technical notes: 1032:1),
// however many members a file has.
constexpr int64_t kMaxDeflateRatio = 1032;
constexpr size_t kChunkBytes = 64 * 1024;

// Fewer than `size` bytes are the end of the file.
absl::StatusOr<size_t> ReadSome(const RegularFile& file, uint8_t* dst,
                                size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got = read(file.descriptor.get(), dst + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return absl::UnavailableError(
          absl::StrCat("read error: ", std::strerror(errno)));
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(RegularFile file) : file_(std::move(file)) {}

  absl::StatusOr<size_t> Read(uint8_t* dst, size_t size) override {
    return ReadSome(file_, dst, size);
  }
  int64_t max_bytes() const override { return file_.size; }
  const char* format() const override { return "plain"; }

 private:
  const RegularFile file_;
};

class GzipSource : public ByteSource {
 public:
  static absl::StatusOr<std::unique_ptr<ByteSource>> Create(
      RegularFile file, int64_t max_inflated_bytes) {
    std::unique_ptr<GzipSource> source(
        new GzipSource(std::move(file), max_inflated_bytes));
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
    inflated_ += static_cast<int64_t>(done);
    if (inflated_ <= max_inflated_bytes_) return done;
    return absl::InvalidArgumentError(absl::StrCat(
        "the gzip data inflates to more than ", max_inflated_bytes_,
        " bytes, the most that is read of one file"));
  }

  int64_t max_bytes() const override {
    return std::min(SaturatingProduct(file_.size, kMaxDeflateRatio),
                    max_inflated_bytes_);
  }
  const char* format() const override { return "gzip"; }

 private:
  GzipSource(RegularFile file, int64_t max_inflated_bytes)
      : file_(std::move(file)),
        max_inflated_bytes_(max_inflated_bytes),
        input_(kChunkBytes) {}

  // True at the end of the file.
  absl::StatusOr<bool> Refill() {
    ASSIGN_OR_RETURN(const size_t got,
                     ReadSome(file_, input_.data(), input_.size()));
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(got);
    return got == 0;
  }

  // Inflates once, into at most `size` bytes.
  absl::StatusOr<size_t> Inflate(uint8_t* dst, size_t size) {
    if (stream_.avail_in == 0) {
      ASSIGN_OR_RETURN(const bool at_end, Refill());
      if (at_end) return absl::InvalidArgumentError("gzip data is cut short");
    }
    const size_t wanted = std::min(size, kMaxInflateBytes);
    stream_.next_out = dst;
    stream_.avail_out = static_cast<uInt>(wanted);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      RETURN_IF_ERROR(BeginNextMember());
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return absl::InvalidArgumentError(
          absl::StrCat("damaged gzip data: ",
                       stream_.msg == nullptr ? "unknown" : stream_.msg));
    }
    return wanted - stream_.avail_out;
  }

  // Behind a member stands the end of the file or another member: bgzip writes
  // several, and so does `cat a.gz b.gz`.
  absl::Status BeginNextMember() {
    if (stream_.avail_in == 0) {
      ASSIGN_OR_RETURN(ended_, Refill());
      if (ended_) return absl::OkStatus();
    }
    if (*stream_.next_in != kGzipMagic[0]) {
      return absl::InvalidArgumentError(
          "there are bytes after the end of the gzip data");
    }
    if (inflateReset(&stream_) == Z_OK) return absl::OkStatus();
    return absl::InternalError("the next gzip member cannot be begun");
  }

  // Far below the limit of uInt.
  static constexpr size_t kMaxInflateBytes = size_t{1} << 30;

  const RegularFile file_;
  const int64_t max_inflated_bytes_;
  int64_t inflated_ = 0;
  std::vector<uint8_t> input_;
  z_stream stream_ = {};
  bool ended_ = false;
};

}  // namespace

absl::StatusOr<RegularFile> OpenRegularFile(const std::string& path) {
  RegularFile file;
  // A fifo without a writer would be waited for.
  file.descriptor =
      FileDescriptor(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.descriptor.valid()) return OpenError(errno);
  ASSIGN_OR_RETURN(file.size, RegularFileSize(file.descriptor.get()));
  ASSIGN_OR_RETURN(file.is_gzip, BeginsAsGzip(file.descriptor.get()));
  return file;
}

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::Open(
    const std::string& path, int64_t max_inflated_bytes) {
  ASSIGN_OR_RETURN(RegularFile file, OpenRegularFile(path));
  return FromFile(std::move(file), max_inflated_bytes);
}

absl::StatusOr<std::unique_ptr<ByteSource>> ByteSource::FromFile(
    RegularFile file, int64_t max_inflated_bytes) {
  if (file.is_gzip) {
    return GzipSource::Create(std::move(file), max_inflated_bytes);
  }
  return std::make_unique<PlainSource>(std::move(file));
}

}  // namespace muster
