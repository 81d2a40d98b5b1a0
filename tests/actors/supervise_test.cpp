#include <gtest/gtest.h>

#include "../../actors/src/supervise.hpp"

namespace troupe::detail {
namespace {

// POOL-7, SUP-1: every case of the decision
TEST(Supervise, DecidesByATable) {
  struct Row {
    FailureFacts facts;
    FailureDecision decision;
  };
  for (const Row& row : {Row{{false, false, false}, {false, false, false}}, Row{{false, false, true}, {false, false, false}},
                         Row{{false, true, false}, {false, false, true}}, Row{{false, true, true}, {false, false, true}},
                         Row{{true, false, false}, {false, false, false}}, Row{{true, false, true}, {false, false, false}},
                         Row{{true, true, false}, {true, true, true}}, Row{{true, true, true}, {true, false, true}}}) {
    EXPECT_EQ(decide(row.facts), row.decision) << row.facts.all_ranks << row.facts.began << row.facts.is_pure;
  }
}

}  // namespace
}  // namespace troupe::detail
