#ifndef COMMON_RPC_FRAME_EXCHANGE_CODEC_H_
#define COMMON_RPC_FRAME_EXCHANGE_CODEC_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/rpc/frame/data_method.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"

namespace muster {

// The path of ParameterService.Exchange.
inline constexpr char kExchangeMethod[] = "/muster.ParameterService/Exchange";

// One message of an Exchange stream, without its header's own fields.
struct ExchangeBody {
  DataMethod method = DataMethod::kPull;
  // The request or reply, as it would be a message of its own.
  grpc::ByteBuffer message;
};

// Writes an ExchangeRequest or ExchangeReply: the header's fields, then the
// body's message as the last one. Its bytes are shared, not copied.
// REQUIRES: the header has no request or reply of its own.
grpc::ByteBuffer EncodeExchange(const google::protobuf::MessageLite& header,
                                const ExchangeBody& body);

// Reads one. `body->message` is empty, and not Valid(), if there is none; else
// it shares the memory of `bytes`. Errors: InvalidArgument.
absl::Status DecodeExchange(const grpc::ByteBuffer& bytes,
                            google::protobuf::MessageLite* header,
                            ExchangeBody* body);

}  // namespace muster

#endif  // COMMON_RPC_FRAME_EXCHANGE_CODEC_H_
