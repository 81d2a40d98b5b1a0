#include <gtest/gtest.h>

#include <troupe/actors/runtime.hpp>

namespace troupe {
namespace {

class Twin {   // of the same spelling as one in worker_test.cpp
 public:
  int answer() const { return 2; }
};

}  // namespace

int answer_of_another_twin() {
  using namespace std::chrono_literals;
  const Runtime here = or_throw(Runtime::create());
  return or_throw(here.pool<Twin>({.name = "twins"})).at<&Twin::answer>(0).get(10s).value();
}

}  // namespace troupe
