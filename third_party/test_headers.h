// What tests include beside library_headers.h.
#ifndef THIRD_PARTY_TEST_HEADERS_H_
#define THIRD_PARTY_TEST_HEADERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "third_party/library_headers.h"

#endif  // THIRD_PARTY_TEST_HEADERS_H_
