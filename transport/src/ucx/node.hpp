#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <troupe/transport/ucx.hpp>

#include "services.hpp"
#include "wire.hpp"
#include "worker.hpp"

namespace troupe::transport::ucx {

class Inbox;
class Outbox;

enum class Via : std::uint8_t { kShm, kCma, kTcp };
[[nodiscard]] const char* to_string(Via via) noexcept;

/// Another node, from the first channel to it until its death. Thread: the progress thread, but `node`.
struct Peer {
  std::uint64_t node = 0;
  Worker* worker = nullptr;
  ucp_ep_h endpoint = nullptr;
  Via large = Via::kShm;           ///< How parts travel.
  Via small = Via::kShm;
  std::optional<Error> lost = {};
};

/// UCX in this process. Its thread alone touches UCX, peers and the maps; other threads post.
class Node final : public UcxNode, public std::enable_shared_from_this<Node> {
 public:
  Node(const Context& context, const UcxOptions& options);
  ~Node() override;
  [[nodiscard]] Result<void> open();

  [[nodiscard]] const std::vector<std::byte>& address() const noexcept override { return address_; }
  [[nodiscard]] Result<std::unique_ptr<Sender>> open_sender(std::span<const std::byte> peer, std::uint64_t number, const ChannelOptions& options) override;
  [[nodiscard]] Result<std::unique_ptr<Receiver>> open_receiver(std::span<const std::byte> peer, std::uint64_t number, const ChannelOptions& options) override;
  [[nodiscard]] Result<std::unique_ptr<Group>> open_group(const std::string& name, std::uint64_t number, int rank, std::span<const std::vector<std::byte>> members) override;
  void peer_down(std::span<const std::byte> peer, const Error& why) override;

  /// Runs `task` on the progress thread, and then makes progress.
  void post(std::function<void()> task);
  [[nodiscard]] const Services& services() const noexcept { return services_; }

  // the rest: on the progress thread
  void control(Peer& peer, std::uint64_t channel, std::uint64_t sequence, const Control& control);
  [[nodiscard]] Head head(std::uint64_t channel, std::uint64_t sequence, std::uint64_t part = 0) const { return {kMagic, kVersion, self_.node, channel, sequence, part}; }
  void forget(const Outbox& outbox);
  void forget(const Inbox& inbox);
  void fail_peer(Peer& peer, const Error& why);

 private:
  using Key = std::pair<std::uint64_t, std::uint64_t>;   ///< Node, channel.

  [[nodiscard]] Result<Peer*> peer_of(const Address& address);
  [[nodiscard]] Result<void> run(const std::function<Result<void>()>& task);
  [[nodiscard]] bool is_near(const Address& other) const;
  void arrived(Arrival arrival, Worker& worker);
  void dispatch(const Head& head, Arrival arrival, Worker& worker);
  void keep_for_later(const Head& head, Arrival arrival, Worker& worker);
  void told(const Head& head, const Control& control);
  void pump();
  void tick();
  void flush();

  const Services services_;
  const UcxOptions options_;
  Address self_;
  std::vector<std::byte> address_;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> busy_;
  boost::asio::steady_timer timer_;
  std::unique_ptr<Worker> local_, network_;
  std::map<std::uint64_t, Peer> peers_;
  std::map<Key, std::shared_ptr<Outbox>> outboxes_;
  std::map<Key, std::shared_ptr<Inbox>> inboxes_;
  struct Early {
    Head head;
    Arrival arrival;
    Worker* worker;
  };
  std::map<Key, std::vector<Early>> early_;   ///< For receivers that are not open yet.
  std::size_t early_count_ = 0;
  std::set<Key> closed_;   ///< Receivers that were: what still comes for them is let go. Numbers are used once.
  Thread thread_;
};

}  // namespace troupe::transport::ucx
