#include "node.hpp"

#include <climits>
#include <fstream>
#include <random>
#include <utility>

#include <boost/asio/post.hpp>
#include <sys/types.h>
#include <unistd.h>

#include <troupe/base/text.hpp>

#include "inbox.hpp"
#include "outbox.hpp"

namespace troupe::transport::ucx {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(100);      // wakes that UCX may lose, deadlines that nobody waits for
constexpr Duration kPatience = std::chrono::seconds(10);        // of the progress thread with a task of ours
constexpr Duration kFlushPatience = std::chrono::seconds(1);
constexpr std::size_t kMostEarly = 4096;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCmaWorks = false;   // ASan takes process_vm_readv's remote side for memory of its own
#else
constexpr bool kCmaWorks = true;
#endif

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string link_of(const char* path) {
  char target[PATH_MAX];
  const auto size = ::readlink(path, target, sizeof target);
  return size > 0 ? std::string(target, static_cast<std::size_t>(size)) : std::string();
}

std::uint64_t draw_node() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) ^ device();
}

/// The lanes that UCX really chose: CMA is dropped silently where the kernel denies it.
bool uses_cma(ucp_ep_h endpoint) {
  ucp_transport_entry_t entries[16] = {};
  ucp_ep_attr_t about{};
  about.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
  about.transports.entries = entries;
  about.transports.num_entries = 16;
  about.transports.entry_size = sizeof entries[0];
  if (ucp_ep_query(endpoint, &about) != UCS_OK) return false;
  for (unsigned i = 0; i < about.transports.num_entries; ++i) {
    if (std::string_view(entries[i].transport_name) == "cma") return true;
  }
  return false;
}

}  // namespace

const char* to_string(Via via) noexcept {
  switch (via) {
    case Via::kShm: return "shm";
    case Via::kCma: return "cma";
    case Via::kTcp: return "tcp";
  }
  return "unknown";
}

Node::Node(const Context& context, const UcxOptions& options) : services_(context), options_(options), busy_(io_.get_executor()), timer_(io_) {}

Result<void> Node::open() {
  if (options_.path == UcxPath::kCma && !kCmaWorks) return fail(Errc::kUnavailable, "UcxPath::kCma does not work under AddressSanitizer; use kShm there");
  self_ = {.node = draw_node(), .host = first_line("/proc/sys/kernel/random/boot_id"), .user = ::geteuid(),
           .namespaces = link_of("/proc/self/ns/pid") + link_of("/proc/self/ns/ipc") + link_of("/proc/self/ns/user")};
  const auto add = [this](std::unique_ptr<Worker>& worker, const char* transports) -> Result<void> {
    auto made = Worker::create(io_, *services_.clock, transports, options_.keepalive);
    if (!made) return fail(std::move(made.error()));
    worker = std::move(*made);
    worker->on_arrival = [this, raw = worker.get()](Arrival arrival) { arrived(std::move(arrival), *raw); };
    return {};
  };
  const bool wants_cma = options_.path == UcxPath::kCma || (options_.path == UcxPath::kAuto && kCmaWorks);
  if (options_.path != UcxPath::kTcp) {
    if (auto ok = add(local_, wants_cma ? "self,sysv,posix,cma" : "self,sysv,posix"); !ok) return ok;
    self_.local = local_->address();
  }
  if (options_.path == UcxPath::kTcp || options_.path == UcxPath::kAuto) {
    if (auto ok = add(network_, "self,tcp"); !ok) return ok;
    self_.network = network_->address();
  }
  address_ = write(self_);
  thread_ = Thread(*services_.clock, "troupe-ucx", [this] { io_.run(); });
  boost::asio::post(io_, [this] {
    pump();
    tick();
  });
  return {};
}

Node::~Node() {
  if (thread_.joinable()) {
    (void)run([this] {
      flush();
      return Result<void>();
    });
    busy_.reset();
    io_.stop();
    thread_.join();
  }
  for (auto& [key, all] : early_) {
    for (auto& one : all) {
      if (one.arrival.descriptor != nullptr) one.worker->release(one.arrival.descriptor);
    }
  }
  local_ = nullptr;
  network_ = nullptr;
}

/// Lets the last words out: ends of channels, answers.
void Node::flush() {
  const TimePoint until = services_.clock->after(kFlushPatience).time();
  for (Worker* worker : {local_.get(), network_.get()}) {
    while (worker != nullptr && worker->in_flight() > 0 && services_.clock->now() < until) worker->progress_once();
  }
}

void Node::post(std::function<void()> task) {
  boost::asio::post(io_, [this, task = std::move(task)] {
    task();
    pump();
  });
}

Result<void> Node::run(const std::function<Result<void>()>& task) {
  struct Shared {
    explicit Shared(Clock& clock) : done(clock) {}
    std::mutex mutex;
    Condition done;
    std::optional<Result<void>> result;
  };
  if (thread_.is_current()) return task();
  const auto shared = std::make_shared<Shared>(*services_.clock);
  post([shared, task] {
    auto result = task();
    const std::lock_guard lock(shared->mutex);
    shared->result = std::move(result);
    shared->done.notify_all();
  });
  std::unique_lock lock(shared->mutex);
  if (!shared->done.wait(lock, services_.clock->after(kPatience), [&] { return shared->result.has_value(); })) {
    return fail(Errc::kTimeout, "UCX's progress thread did not answer; a peer that is stopped while its shared memory is written may hold it");
  }
  return *shared->result;
}

void Node::pump() {
  if (local_) local_->pump();
  if (network_) network_->pump();
}

void Node::tick() {
  timer_.expires_after(kTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    std::vector<std::shared_ptr<Outbox>> all;
    for (const auto& [key, outbox] : outboxes_) all.push_back(outbox);
    for (const auto& outbox : all) outbox->sweep();
    pump();
    tick();
  });
}

bool Node::is_near(const Address& other) const {
  return other.host == self_.host && other.user == self_.user && other.namespaces == self_.namespaces && !other.local.empty() && local_;
}

Result<Peer*> Node::peer_of(const Address& address) {
  const auto found = peers_.find(address.node);
  if (found != peers_.end()) {
    if (found->second.lost) return fail(*found->second.lost);   // TRN-5: a failed endpoint stays failed
    return &found->second;
  }
  const bool near = is_near(address);
  if (!near && (!network_ || address.network.empty())) return fail(Errc::kUnavailable, "the two UCX nodes have no path in common: both need UcxPath::kAuto or kTcp, or the same host, user and namespaces");
  Peer& peer = peers_[address.node];
  peer.node = address.node;
  peer.worker = near ? local_.get() : network_.get();
  auto endpoint = peer.worker->connect(near ? address.local : address.network, [this, &peer](ucs_status_t status) {
    fail_peer(peer, {Errc::kPeerLost, text("UCX lost the peer: ", ucs_status_string(status))});
  });
  if (!endpoint) {
    peers_.erase(address.node);
    return fail(std::move(endpoint.error()));
  }
  peer.endpoint = *endpoint;
  peer.small = near ? Via::kShm : Via::kTcp;
  peer.large = near && uses_cma(peer.endpoint) ? Via::kCma : peer.small;
  return &peer;
}

void Node::control(Peer& peer, std::uint64_t channel, std::uint64_t sequence, const Control& control) {
  const Head head = this->head(channel, sequence);
  peer.worker->send(peer.endpoint, Am::kControl, std::as_bytes(std::span(&head, 1)), write(control), {});
}

void Node::forget(const Outbox& outbox) { outboxes_.erase({outbox.peer(), outbox.number()}); }
void Node::forget(const Inbox& inbox) {
  const Key key{inbox.peer(), inbox.number()};
  inboxes_.erase(key);
  closed_.insert(key);
}

void Node::fail_peer(Peer& peer, const Error& why) {
  if (peer.lost) return;
  peer.lost = why;
  std::vector<std::shared_ptr<Outbox>> out;
  std::vector<std::shared_ptr<Inbox>> in;
  for (const auto& [key, outbox] : outboxes_) {
    if (key.first == peer.node) out.push_back(outbox);
  }
  for (const auto& [key, inbox] : inboxes_) {
    if (key.first == peer.node) in.push_back(inbox);
  }
  for (const auto& one : out) one->end(why, false);
  for (const auto& one : in) one->end(why, false);
  // after the boxes let go of what it had offered: they posted that
  boost::asio::post(io_, [this, &peer] {
    if (peer.endpoint != nullptr) peer.worker->close(std::exchange(peer.endpoint, nullptr));
    pump();
  });
}

// ---- What arrives

void Node::arrived(Arrival arrival, Worker& worker) {
  const auto drop = [&] {
    if (arrival.descriptor != nullptr) worker.release(arrival.descriptor);
  };
  const auto head = read_head(arrival.head);
  if (!head) {
    services_.log->warn(text("UCX: ", head.error().describe(), "; dropped"));
    return drop();
  }
  const auto known = peers_.find(head->node);
  if (known != peers_.end() && known->second.lost) return drop();
  if ((arrival.id == Am::kPart) != (arrival.descriptor != nullptr) && !(arrival.id == Am::kPart && arrival.length == 0)) {
    services_.log->warn("UCX: a message that is no rendezvous where one was expected; dropped");
    return drop();
  }
  dispatch(*head, std::move(arrival), worker);
}

void Node::dispatch(const Head& head, Arrival arrival, Worker& worker) {
  const Key key{head.node, head.channel};
  if (arrival.id == Am::kControl) {
    const auto control = read_control(arrival.payload);
    if (!control) {
      const auto peer = peers_.find(head.node);
      if (peer != peers_.end()) fail_peer(peer->second, control.error());
      return;
    }
    const bool for_inbox = control->kind == Kind::kCancel || control->kind == Kind::kEndOfSender;
    if (!for_inbox || inboxes_.contains(key)) return told(head, *control);
    return keep_for_later(head, std::move(arrival), worker);
  }
  const auto inbox = inboxes_.find(key);
  if (inbox == inboxes_.end()) return keep_for_later(head, std::move(arrival), worker);
  const auto box = inbox->second;
  if (arrival.id == Am::kAnnounce) return box->announced(head.sequence, arrival.payload);
  box->offered(head, arrival.descriptor, arrival.length);
}

void Node::told(const Head& head, const Control& control) {
  const Key key{head.node, head.channel};
  if (control.kind == Kind::kCancel || control.kind == Kind::kEndOfSender) {
    const auto box = inboxes_.at(key);
    return control.kind == Kind::kCancel ? box->cancelled(head.sequence, control.why) : box->end(control.why, false);
  }
  const auto found = outboxes_.find(key);
  if (found == outboxes_.end()) return;
  const auto box = found->second;
  return control.kind == Kind::kEndOfReceiver ? box->end(control.why, false) : box->answered(head.sequence, control);
}

/// The receiving end may be opened a moment after the first message; one that never is must not fill the memory.
void Node::keep_for_later(const Head& head, Arrival arrival, Worker& worker) {
  if (closed_.contains({head.node, head.channel})) {
    if (arrival.descriptor != nullptr) worker.release(arrival.descriptor);
    return;
  }
  if (early_count_ == kMostEarly) {
    services_.log->warn(text("UCX: more than ", kMostEarly, " messages for channels that nobody opened; dropped"));
    if (arrival.descriptor != nullptr) worker.release(arrival.descriptor);
    return;
  }
  ++early_count_;
  early_[{head.node, head.channel}].push_back({head, std::move(arrival), &worker});
}

void Node::peer_down(std::span<const std::byte> peer, const Error& why) {
  const auto address = read_address(peer);
  if (!address) return;
  post([this, node = address->node, why] {
    Peer& gone = peers_[node];   // also one that was never met: it will not be
    gone.node = node;
    fail_peer(gone, why);
  });
}

}  // namespace troupe::transport::ucx

namespace troupe::transport {

Result<std::shared_ptr<UcxNode>> UcxNode::create(const Context& context, const UcxOptions& options) {
  auto node = std::make_shared<ucx::Node>(context, options);
  if (auto ok = node->open(); !ok) return fail(std::move(ok.error()));
  return node;
}

}  // namespace troupe::transport
