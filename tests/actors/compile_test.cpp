// Wrong calls do not compile: each line is a call that a user might write.
#include <gtest/gtest.h>

#include <troupe/actors/runtime.hpp>

namespace troupe {
namespace {

struct Point {
  int x = 0;
  std::string name;
  static auto troupe_fields(auto& self) { return std::tie(self.x, self.name); }
};
struct NotListed {
  int x = 0;
};

struct Worker {
  int add(int a, int b) { return a + b; }
  std::string name(const std::string& prefix) const { return prefix; }
  void nothing() {}
  int point(const Point& point) { return point.x; }
  int not_listed(NotListed) { return 0; }
  int changes(int& out) { return out; }
  NotListed gives() { return {}; }
  int field = 0;
};
struct Other {
  int add(int, int) { return 0; }
};

static_assert(VerbCall<&Worker::add, Worker, int, int>);
static_assert(VerbCall<&Worker::add, Worker, short, int>, "converts as a call would");
static_assert(VerbCall<&Worker::add, Worker, Ref<int>, int>, "a Ref fits where the verb takes its value");
static_assert(VerbCall<&Worker::add, Worker, PerRank<int>, PerRank<Ref<int>>>);
static_assert(VerbCall<&Worker::add, Worker, Gather<int, std::string>, int>);
static_assert(VerbCall<&Worker::name, Worker, const char*>);
static_assert(VerbCall<&Worker::nothing, Worker>);
static_assert(VerbCall<&Worker::point, Worker, Point>);
static_assert(!VerbCall<&Worker::add, Worker, int>, "an argument is missing");
static_assert(!VerbCall<&Worker::add, Worker, int, int, int>, "one too many");
static_assert(!VerbCall<&Worker::add, Worker, int, std::string>, "a string is no int");
static_assert(!VerbCall<&Worker::add, Worker, Ref<std::string>, int>, "nor is a Ref to one");
static_assert(!VerbCall<&Worker::add, Worker, PerRank<std::string>, int>);
static_assert(!VerbCall<&Other::add, Worker, int, int>, "a verb of another class");
static_assert(!VerbCall<&Worker::field, Worker>, "a member that is no function");
static_assert(!VerbCall<&Worker::not_listed, Worker, NotListed>, "a struct without troupe_fields");
static_assert(!VerbCall<&Worker::gives, Worker>, "a result without troupe_fields");
static_assert(!VerbCall<&Worker::changes, Worker, int>, "arguments are immutable once sent (POOL-5)");
static_assert(!SingleVerbCall<&Worker::add, Worker, PerRank<int>, int>, "one rank takes one argument");
static_assert(PayloadType<std::vector<std::optional<Point>>> && !PayloadType<int*> && !PayloadType<std::vector<NotListed>>);
static_assert(PayloadType<Pool<Worker>> && PayloadType<Ref<int>>);

TEST(Verbs, HaveTheNamesTheUserWrote) {
  EXPECT_NE(std::string(detail::verb_name<&Worker::add>()).find("Worker::add"), std::string::npos) << detail::verb_name<&Worker::add>();
  EXPECT_EQ(detail::class_name<Worker>(), "Worker");
}

TEST(Payloads, CountBytesOverFields) {
  EXPECT_EQ(Payload<Point>::bytes({1, "four"}), 4 + 4);
  EXPECT_EQ(Payload<std::vector<double>>::bytes(std::vector<double>(100)), 800);
  EXPECT_NE(Payload<Point>::fingerprint({1, "four"}), Payload<Point>::fingerprint({2, "four"}));
}

}  // namespace
}  // namespace troupe
