#ifndef COMMON_TLS_TLS_SETTINGS_H_
#define COMMON_TLS_TLS_SETTINGS_H_

namespace muster {

// Has this process speak TLS 1.3 and nothing older, with AES-128-GCM. gRPC 1.51
// offers no setting for either: OpenSSL's own configuration names the cipher,
// and of TLS 1.2 gRPC is left a cipher that wants a shared secret, which nobody
// has. What gRPC prints of handshakes goes: PeerTrust says it in better words.
// Repeatable. REQUIRES: gRPC has made no TLS credentials before.
void SetUpTls();

}  // namespace muster

#endif  // COMMON_TLS_TLS_SETTINGS_H_
