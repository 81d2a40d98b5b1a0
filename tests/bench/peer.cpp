#include "peer.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/base/result.hpp>
#include <troupe/base/text.hpp>

namespace bench {
namespace {

constexpr int kPatience = 10 * 60 * 1000;   // ms; loading transformers takes half a minute on a busy machine

[[noreturn]] void give_up(const std::string& what) { throw troupe::Exception({troupe::Errc::kPeerLost, "the peer " + what}); }

}  // namespace

Peer::Peer(const std::vector<std::string>& arguments) {
  int in[2], out[2];
  // closed in other peers that are started meanwhile: one that held these would hide the end of its input
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) give_up(std::strerror(errno));
  std::vector<char*> argv;
  for (const auto& one : arguments) argv.push_back(const_cast<char*>(one.c_str()));
  argv.push_back(nullptr);
  process_ = ::fork();
  if (process_ < 0) give_up(std::strerror(errno));
  if (process_ == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(in[0]);
  ::close(out[1]);
  to_ = in[1];
  from_ = out[0];
  (void)read_line();
}

Peer::~Peer() {
  ::close(to_);   // the end of its input ends it
  ::close(from_);
  ::waitpid(process_, nullptr, 0);
}

std::string Peer::read_line() {
  for (;;) {
    if (const std::size_t end = rest_.find('\n'); end != std::string::npos) {
      std::string line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      return line;
    }
    ::pollfd ready{from_, POLLIN, 0};
    if (::poll(&ready, 1, kPatience) <= 0) give_up("did not answer in 10 minutes");
    char buffer[4096];
    const ::ssize_t got = ::read(from_, buffer, sizeof buffer);
    if (got <= 0) give_up("ended; see its messages above");
    rest_.append(buffer, static_cast<std::size_t>(got));
  }
}

std::string Peer::ask(const std::string& line) {
  const std::string with_end = line + "\n";
  if (::write(to_, with_end.data(), with_end.size()) != static_cast<::ssize_t>(with_end.size())) give_up("takes no lines any more");
  return read_line();
}

}  // namespace bench
