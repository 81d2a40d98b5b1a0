#include "worker.hpp"

#include <cstring>
#include <mutex>
#include <utility>

#include <ucs/debug/log_def.h>
#include <unistd.h>

#include <troupe/base/text.hpp>

namespace troupe::transport::ucx {
namespace {

/// UCX writes its warnings to stdout: what matters of them comes back as a status (EMB). Once for the process: UCX's
/// list of handlers has no lock, and a host's own handler may come to lie above this one.
ucs_log_func_rc_t swallow(const char*, unsigned, const char*, ucs_log_level_t, const ucs_log_component_config_t*, const char*, va_list) { return UCS_LOG_FUNC_RC_STOP; }

void keep_quiet() {
  static std::once_flag once;
  std::call_once(once, [] { ucs_log_push_handler(&swallow); });
}

constexpr int kTurns = 1000;
constexpr std::chrono::milliseconds kIdling{50}, kRest{5};

Error unavailable(const char* what, ucs_status_t status) {
  return {.code = Errc::kUnavailable, .message = text("UCX: ", what, ": ", ucs_status_string(status))};
}

}  // namespace

/// Lives until UCX is done with it.
struct Worker::Request {
  Worker* worker = nullptr;
  std::vector<std::byte> head = {};
  std::vector<std::byte> payload = {};
  Done done = {};

  static void finish(void* handle, ucs_status_t status, void* user) {
    auto* const request = static_cast<Request*>(user);
    request->complete(status);
    ucp_request_free(handle);
  }
  void complete(ucs_status_t status) {
    worker->live_.erase(this);
    if (done) worker->later_.push_back([done = std::move(done), status] { done(status); });
    delete this;
  }
};

struct Worker::Endpoint {
  Worker* worker = nullptr;
  ucp_ep_h handle = nullptr;
  std::function<void(ucs_status_t)> on_failure = {};
};

Worker::Worker(boost::asio::io_context& io, Clock& clock) : clock_(clock), event_(io), rest_(io) {}

Result<std::unique_ptr<Worker>> Worker::create(boost::asio::io_context& io, Clock& clock, const std::string& transports, Duration keepalive) {
  std::unique_ptr<Worker> out(new Worker(io, clock));
  if (auto ok = out->open(transports, keepalive); !ok) return fail(std::move(ok.error()));
  return out;
}

Result<void> Worker::open(const std::string& transports, Duration keepalive) {
  keep_quiet();
  ucp_config_t* config = nullptr;
  if (const auto status = ucp_config_read(nullptr, nullptr, &config); status != UCS_OK) return fail(unavailable("its configuration can't be read", status));
  const std::string interval = text(std::max<std::int64_t>(1, std::chrono::duration_cast<std::chrono::milliseconds>(keepalive).count()), "ms");
  // PEER error handling keeps shared memory and CMA only with the first three; TCP is slow with small segments (notes: 1.2, 1.3)
  const std::pair<const char*, const char*> knobs[] = {{"TLS", transports.c_str()}, {"SYSV_ERROR_HANDLING", "y"}, {"POSIX_ERROR_HANDLING", "y"}, {"CMA_MEMORY_INVALIDATE", "y"},
                                                       {"KEEPALIVE_INTERVAL", interval.c_str()}, {"TCP_TX_SEG_SIZE", "256K"}, {"TCP_RX_SEG_SIZE", "512K"}, {"ERROR_SIGNALS", ""}};
  for (const auto& [name, value] : knobs) (void)ucp_config_modify(config, name, value);   // one that a version lacks changes nothing
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES;
  parameters.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  const auto made = ucp_init(&parameters, config, &context_);
  ucp_config_release(config);
  if (made != UCS_OK) return fail(unavailable(text("no context for the transports ", transports).c_str(), made));
  ucp_worker_params_t about{};
  about.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  about.thread_mode = UCS_THREAD_MODE_SERIALIZED;   // made by one thread, driven by another
  if (const auto status = ucp_worker_create(context_, &about, &worker_); status != UCS_OK) return fail(unavailable("no worker", status));
  for (const Am id : {Am::kAnnounce, Am::kPart, Am::kControl}) {
    Handler& handler = handlers_[static_cast<unsigned>(id) - 1];
    handler = {this, id};
    ucp_am_handler_param_t set{};
    set.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    set.id = static_cast<unsigned>(id);
    set.cb = &Worker::arrived;
    set.arg = &handler;
    if (const auto status = ucp_worker_set_am_recv_handler(worker_, &set); status != UCS_OK) return fail(unavailable("no handler", status));
  }
  ucp_address_t* address = nullptr;
  std::size_t size = 0;
  if (const auto status = ucp_worker_get_address(worker_, &address, &size); status != UCS_OK) return fail(unavailable("no address", status));
  const auto* const bytes = reinterpret_cast<const std::byte*>(address);
  address_.assign(bytes, bytes + size);
  ucp_worker_release_address(worker_, address);
  int event = -1;
  if (const auto status = ucp_worker_get_efd(worker_, &event); status != UCS_OK) return fail(unavailable("no event descriptor", status));
  event_.assign(::dup(event));   // asio closes its own
  return {};
}

Worker::~Worker() {
  boost::system::error_code ignored;
  event_.close(ignored);
  rest_.cancel();
  while (!endpoints_.empty()) close(endpoints_.back()->handle);
  if (worker_ != nullptr) ucp_worker_destroy(worker_);
  for (Request* const request : live_) delete request;   // UCX forgot them (openucx#11154); nobody can touch their bytes now
  if (context_ != nullptr) ucp_cleanup(context_);
}

Result<ucp_ep_h> Worker::connect(std::span<const std::byte> address, std::function<void(ucs_status_t)> on_failure) {
  auto endpoint = std::make_unique<Endpoint>(Endpoint{this, nullptr, std::move(on_failure)});
  ucp_ep_params_t about{};
  about.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  about.address = reinterpret_cast<const ucp_address_t*>(address.data());
  about.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  about.err_handler.cb = &Worker::failed;
  about.err_handler.arg = endpoint.get();
  if (const auto status = ucp_ep_create(worker_, &about, &endpoint->handle); status != UCS_OK) return fail(unavailable("no endpoint", status));
  endpoints_.push_back(std::move(endpoint));
  return endpoints_.back()->handle;
}

void Worker::close(ucp_ep_h handle) {
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t closing = ucp_ep_close_nbx(handle, &how);
  if (UCS_PTR_IS_PTR(closing)) {
    for (int i = 0; i < 10'000 && ucp_request_check_status(closing) == UCS_INPROGRESS; ++i) ucp_worker_progress(worker_);
    ucp_request_free(closing);
  }
  std::erase_if(endpoints_, [handle](const auto& one) { return one->handle == handle; });
}

void Worker::failed(void* endpoint, ucp_ep_h /*handle*/, ucs_status_t status) {
  auto* const self = static_cast<Endpoint*>(endpoint);
  if (!self->on_failure) return;
  self->worker->later_.push_back([tell = std::exchange(self->on_failure, nullptr), status] { tell(status); });
}

ucs_status_t Worker::arrived(void* handler, const void* head, std::size_t head_size, void* data, std::size_t size, const ucp_am_recv_param_t* about) {
  const auto* const from = static_cast<Handler*>(handler);
  Arrival arrival{.id = from->id, .length = size};
  const auto* const head_bytes = static_cast<const std::byte*>(head);
  arrival.head.assign(head_bytes, head_bytes + head_size);
  const bool is_part = (about->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  if (is_part) {
    arrival.descriptor = data;
  } else if (size > 0) {
    const auto* const bytes = static_cast<const std::byte*>(data);
    arrival.payload.assign(bytes, bytes + size);
  }
  Worker* const self = from->worker;
  self->later_.push_back([self, arrival = std::make_shared<Arrival>(std::move(arrival))] { self->on_arrival(std::move(*arrival)); });
  return is_part ? UCS_INPROGRESS : UCS_OK;
}

void Worker::start(ucs_status_ptr_t status, std::unique_ptr<Request> request) {
  live_.insert(request.get());
  if (!UCS_PTR_IS_PTR(status)) request.release()->complete(UCS_PTR_STATUS(status));   // at once: no callback comes
  else (void)request.release();
}

void Worker::send(ucp_ep_h endpoint, Am id, std::span<const std::byte> head, std::vector<std::byte> payload, Done done) {
  auto request = std::make_unique<Request>(Request{this, {head.begin(), head.end()}, std::move(payload), std::move(done)});
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  how.cb.send = &Request::finish;
  how.user_data = request.get();
  how.flags = UCP_AM_SEND_FLAG_EAGER;
  Request& sent = *request;
  start(ucp_am_send_nbx(endpoint, static_cast<unsigned>(id), sent.head.data(), sent.head.size(), sent.payload.data(), sent.payload.size(), &how), std::move(request));
}

void Worker::offer(ucp_ep_h endpoint, std::span<const std::byte> head, const void* data, std::size_t size, Done done) {
  auto request = std::make_unique<Request>(Request{this, {head.begin(), head.end()}, {}, std::move(done)});
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.cb.send = &Request::finish;
  how.user_data = request.get();
  how.flags = UCP_AM_SEND_FLAG_RNDV;
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  Request& sent = *request;
  start(ucp_am_send_nbx(endpoint, static_cast<unsigned>(Am::kPart), sent.head.data(), sent.head.size(), data, size, &how), std::move(request));
}

void Worker::pull(void* descriptor, void* target, std::size_t size, Done done) {
  auto request = std::make_unique<Request>(Request{this, {}, {}, std::move(done)});
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  how.cb.recv_am = [](void* handle, ucs_status_t status, std::size_t, void* user) { Request::finish(handle, status, user); };
  how.user_data = request.get();
  how.memory_type = UCS_MEMORY_TYPE_HOST;
  start(ucp_am_recv_data_nbx(worker_, descriptor, target, size, &how), std::move(request));
}

void Worker::release(void* descriptor) { ucp_am_data_release(worker_, descriptor); }

void Worker::run_later() {
  while (!later_.empty()) {
    const auto now = std::exchange(later_, {});
    for (const auto& one : now) one();
  }
}

bool Worker::progress_once() {
  const bool any = ucp_worker_progress(worker_) != 0;
  if (later_.empty()) return any;
  useful_ = clock_.now();
  run_later();
  return true;
}

/// UCX may report progress without end: a keepalive to a peer whose shared memory is full is tried again and again.
/// Others get their turn in between, and what nothing comes of rests.
void Worker::pump_again() {
  if (resting_) return;
  resting_ = true;
  const bool is_idling = clock_.now() - useful_ > kIdling;
  rest_.expires_after(is_idling ? kRest : std::chrono::milliseconds(0));
  rest_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    resting_ = false;
    pump();
  });
}

void Worker::pump() {
  for (int turn = 0;; ++turn) {
    if (turn == kTurns) return pump_again();
    if (progress_once()) continue;
    const auto status = ucp_worker_arm(worker_);
    if (status == UCS_OK) break;
    if (status != UCS_ERR_BUSY) break;   // the timer of the node looks again
  }
  if (waiting_) return;
  waiting_ = true;
  event_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const boost::system::error_code& error) {
    if (error) return;   // closed
    waiting_ = false;
    pump();
  });
}

}  // namespace troupe::transport::ucx
