#ifndef PS_SERVER_HTTP_STATUS_JSON_H_
#define PS_SERVER_HTTP_STATUS_JSON_H_

#include <string>

#include "ps_server/http/ps_look.h"

namespace muster {

// The look for the page, as JSON. README.md has the members. Neither an
// incarnation nor an address is in it, nor a text in which a path may be.
std::string StatusJson(const PsLook& look);

}  // namespace muster

#endif  // PS_SERVER_HTTP_STATUS_JSON_H_
