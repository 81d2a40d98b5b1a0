#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/base/result.hpp>

namespace troupe::transport {

/// Element types by what they are on the wire. Moving works for all, by bytes (TRN-3); reducing only
/// for those that add: kF64, kF32, kBf16, kF16, kI64, kI32.
enum class DType : std::uint8_t {
  kU8 = 1, kI8, kI16, kI32, kI64, kU16, kU32, kU64, kBool,
  kF16, kBf16, kF32, kF64, kF8E4M3, kF8E5M2, kC64, kC128,
};
[[nodiscard]] std::int64_t size_of(DType dtype) noexcept;
[[nodiscard]] std::string_view to_string(DType dtype) noexcept;

enum class MemoryKind : std::uint8_t { kHost = 0, kCuda = 1, kMeta = 2 };

struct DeviceId {
  MemoryKind kind = MemoryKind::kHost;
  std::int16_t index = 0;
  friend bool operator==(DeviceId, DeviceId) = default;
};

/// What a tensor is, without its bytes: at most 8 dims. Strides in elements.
struct TensorDesc {
  DType dtype = DType::kU8;
  std::vector<std::int64_t> shape = {};    ///< Empty: 0-dim, one element.
  std::vector<std::int64_t> strides = {};  ///< Empty: contiguous.
  DeviceId device = {};

  [[nodiscard]] std::int64_t elements() const noexcept;
  [[nodiscard]] std::int64_t bytes() const noexcept { return elements() * size_of(dtype); }  ///< Packed.
  [[nodiscard]] bool contiguous() const noexcept;
  [[nodiscard]] std::string to_string() const;  ///< "f32 [4, 8]"
  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

/// A tensor whose bytes are lent to the transport. `keep` lives until the operation has completed and
/// the peer can no longer touch the bytes (TRN-2). `data` is the first element (strides apply).
struct Tensor {
  void* data = nullptr;
  TensorDesc desc = {};
  std::shared_ptr<const void> keep = nullptr;
  void* ready_event = nullptr;  ///< A device event after which the bytes are there; unused for host memory.
};

/// Counts what really moved. One per runtime, handed to everything that copies; read by reports and
/// tests. Thread: any.
struct TransferCounters {
  std::atomic<std::int64_t> copied_bytes{0};      ///< At the copy primitive, whoever called it.
  std::atomic<std::int64_t> copies{0};
  std::atomic<std::int64_t> referenced_bytes{0};  ///< Handed over by reference: no copy.
  std::atomic<std::int64_t> messages{0};
};

/// The one copy primitive: `bytes` from `source` to `target`, counted.
void copy_bytes(void* target, const void* source, std::int64_t bytes, TransferCounters& counters);

/// Copies between two tensors of equal dtype and shape whatever their strides, counted once.
/// Fails with: kMismatch naming both descriptions.
[[nodiscard]] Result<void> copy_tensor(const Tensor& target, const Tensor& source, TransferCounters& counters);

}  // namespace troupe::transport
