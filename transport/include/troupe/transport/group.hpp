#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <troupe/transport/channel.hpp>

namespace troupe::transport {

/// How members' elements become one, always in rank order 0..P-1. kBf16 and kF16 are summed in fp32 and
/// rounded once, at the end; integers wrap; a NaN wins kMax.
enum class Reduce : std::uint8_t { kSum, kMax };

/// How long a collective waits for the other members when begin() gave no deadline (SUP-2).
inline constexpr Duration kGroupPatience = std::chrono::seconds(60);

/// Which call of which verb this is: what all members must agree on besides operation and dtype (TRN-8).
struct Position {
  std::uint64_t ticket = 0;  ///< Of the all-rank call that runs.
  std::uint64_t index = 0;   ///< Of the collective inside it.
  friend bool operator==(Position, Position) = default;
};

/// Bytes one member sent and received, by the algorithm really used: tests hold it against formulas.
struct GroupTraffic {
  std::int64_t sent_bytes = 0;
  std::int64_t received_bytes = 0;
  std::int64_t operations = 0;
};

/// One member's end of a set of ranks that communicate: what an axis of a mesh is to its rank.
/// All calls block the calling rank; every member must call the same operations in the same order.
/// Sums are made in rank order, so that results are the same bits in threads, processes and hosts
/// (NUM-1). Operation, position, dtype and counts are compared in the rendezvous itself: a mismatch is
/// kMismatch on every member, never a hang or a wrong result (TRN-8).
/// Fails with (all calls): kTimeout past the deadline; kPeerLost when a member died, left or failed;
/// kMismatch; kClosed. After any failure the generation has ended: every later call fails at once with
/// the first failure as its cause, until the owner of the group builds the next one.
/// Tensors are contiguous host memory, or all of kMeta: then the members agree, and nothing moves. Thread: one rank's own; abort() from any.
class Group {
 public:
  virtual ~Group() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  [[nodiscard]] virtual GroupTraffic traffic() const = 0;

  /// Sum or max over members, in place. Reduce-scatter by direct exchange, then all-gather:
  /// each member sends 2 (P-1)/P of the bytes (exactly: every chunk it does not own once, its own P-1 times).
  [[nodiscard]] virtual Result<void> all_reduce(Tensor inout, Reduce reduce = Reduce::kSum) = 0;

  /// `out[m]` receives member m's `in`; sizes may differ (ragged), zero included.
  [[nodiscard]] virtual Result<void> all_gather(Tensor in, std::span<const Tensor> out) = 0;

  /// `out` becomes the sum over members of their `in[rank()]`. in[m] is meant for member m.
  [[nodiscard]] virtual Result<void> reduce_scatter(std::span<const Tensor> in, Tensor out) = 0;

  /// `in[m]` goes to member m, `out[m]` comes from member m; ragged, zero included.
  [[nodiscard]] virtual Result<void> all_to_all(std::span<const Tensor> in, std::span<const Tensor> out) = 0;

  [[nodiscard]] virtual Result<void> broadcast(Tensor inout, int root) = 0;
  [[nodiscard]] virtual Result<void> barrier() = 0;

  /// Names the verb call that follows and its deadline; collectives inside count up from index 0.
  /// Before the first begin(): ticket 0, and kGroupPatience for each collective.
  virtual void begin(std::uint64_t ticket, Deadline deadline) = 0;

  /// Ends this generation for all members: those that wait return kPeerLost at once with `why` as the
  /// cause, and no member returns while another still reads its memory (POOL-7). Any thread.
  virtual void abort(const Error& why) = 0;
};

/// The group of one member: every operation is local. Copies count in `counters` when there are some.
[[nodiscard]] std::unique_ptr<Group> solo_group(std::string name,
                                                std::shared_ptr<TransferCounters> counters = nullptr);

/// All members' ends of one generation of an in-process group, over in-process channels.
/// Fails with: kInvalidArgument when size < 1.
[[nodiscard]] Result<std::vector<std::unique_ptr<Group>>> open_inproc_group(const Context& context,
                                                                           const std::string& name, int size);

/// How the CPU collectives cut `elements` for the direct exchange: member m owns this share, starting on
/// 64 bytes where it can. Public for the formulas in tests.
[[nodiscard]] std::vector<std::int64_t> chunk_elements(std::int64_t elements, DType dtype, int size);

}  // namespace troupe::transport
