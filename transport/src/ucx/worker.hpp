#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <ucp/api/ucp.h>

#include <troupe/base/clock.hpp>
#include <troupe/base/result.hpp>

namespace troupe::transport::ucx {

enum class Am : unsigned { kAnnounce = 1, kPart, kControl };

/// An active message that has arrived. A part is only announced: `descriptor` is to be pulled or released.
struct Arrival {
  Am id = Am::kControl;
  std::vector<std::byte> head = {};
  std::vector<std::byte> payload = {};
  void* descriptor = nullptr;
  std::size_t length = 0;
};

/// One UCX context and worker for one class of transports, driven by events on an io_context (notes: UCX 1.4).
/// Thread: that of the io_context.
class Worker {
 public:
  using Done = std::function<void(ucs_status_t)>;

  /// `transports` is UCX_TLS. Fails with: kUnavailable with UCX's reason.
  [[nodiscard]] static Result<std::unique_ptr<Worker>> create(boost::asio::io_context& io, Clock& clock, const std::string& transports, Duration keepalive);
  ~Worker();   ///< Endpoints are closed by force; no callback runs afterwards.

  [[nodiscard]] const std::vector<std::byte>& address() const noexcept { return address_; }

  /// What arrives, outside UCX's callbacks.
  std::function<void(Arrival)> on_arrival;

  /// `on_failure` runs once, outside UCX's callbacks, when UCX finds the peer gone.
  [[nodiscard]] Result<ucp_ep_h> connect(std::span<const std::byte> address, std::function<void(ucs_status_t)> on_failure);
  void close(ucp_ep_h endpoint);

  /// Head and payload are copied; `done` may be empty.
  void send(ucp_ep_h endpoint, Am id, std::span<const std::byte> head, std::vector<std::byte> payload, Done done);
  /// Announces `size` bytes at `data`, which are lent until `done`.
  void offer(ucp_ep_h endpoint, std::span<const std::byte> head, const void* data, std::size_t size, Done done);
  /// Pulls what was announced into `target`, which is lent until `done`.
  void pull(void* descriptor, void* target, std::size_t size, Done done);
  void release(void* descriptor);

  /// Makes progress until there is none to make, then waits for an event.
  void pump();
  /// Sends that UCX has not completed.
  [[nodiscard]] std::size_t in_flight() const noexcept { return live_.size(); }
  bool progress_once();

 private:
  struct Request;
  struct Endpoint;
  Worker(boost::asio::io_context& io, Clock& clock);
  [[nodiscard]] Result<void> open(const std::string& transports, Duration keepalive);
  void start(ucs_status_ptr_t status, std::unique_ptr<Request> request);
  void run_later();
  void pump_again();
  static ucs_status_t arrived(void* self, const void* head, std::size_t head_size, void* data, std::size_t size, const ucp_am_recv_param_t* about);
  static void failed(void* endpoint, ucp_ep_h handle, ucs_status_t status);

  Clock& clock_;
  boost::asio::posix::stream_descriptor event_;
  boost::asio::steady_timer rest_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<std::byte> address_;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  struct Handler {
    Worker* worker;
    Am id;
  };
  Handler handlers_[3] = {};
  std::vector<std::function<void()>> later_;
  std::set<Request*> live_;   ///< What UCX has not completed.
  bool waiting_ = false;
  bool resting_ = false;
  TimePoint useful_ = {};   ///< When something last came of progress.
};

}  // namespace troupe::transport::ucx
