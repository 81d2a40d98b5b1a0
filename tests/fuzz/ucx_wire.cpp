// Any bytes as what a UCX peer may send: its header, an announcement, a control message, an address. Refused by name, or
// written again as the same bytes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "ucx/wire.hpp"

namespace {

using namespace troupe::transport;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class T>
void check(const troupe::Result<T>& read, std::span<const std::byte> bytes, bool is_exact) {
  if (!read) {
    require(read.error().code == troupe::Errc::kBadData || read.error().code == troupe::Errc::kMismatch);
    return;
  }
  const auto again = ucx::write(*read);
  require(!is_exact || std::ranges::equal(again, bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: (void)ucx::read_head(bytes); break;
    case 1: check(ucx::read_announcement(bytes), bytes, true); break;
    case 2: check(ucx::read_control(bytes), bytes, false); break;   // an error is written with its name before it
    default: check(ucx::read_address(bytes), bytes, true);
  }
  return 0;
}
