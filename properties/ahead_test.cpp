// SPDX-License-Identifier: Apache-2.0
#include "properties/ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>

namespace lossgate::properties {
namespace {

constexpr std::int64_t kMany = 100'000;

void count_up(const Ahead::Take& take) {
  for (std::int64_t i = 0; i < kMany; ++i) {
    take({.output = 1, .index = i, .value = {.v = 0.5L * static_cast<reference::Real>(i)}});
  }
}

TEST(Ahead, GivesEveryEntryInItsOrder) {
  Ahead ahead(count_up);
  for (std::int64_t i = 0; i < kMany; ++i) {
    const ExpectedEntry& entry = ahead.next();
    ASSERT_EQ(entry.index, i);
    ASSERT_EQ(entry.value.v, 0.5L * static_cast<reference::Real>(i));
  }
  EXPECT_THROW(ahead.next(), std::out_of_range);
}

TEST(Ahead, ComputesThousandsOfEntriesBeforeAnybodyTakesOne) {
  std::promise<void> thousandth;
  Ahead ahead([&](const Ahead::Take& take) {
    for (std::int64_t i = 0; i < kMany; ++i) {
      if (i == 1000) thousandth.set_value();
      take({.output = 0, .index = i, .value = {}});
    }
  });
  EXPECT_EQ(thousandth.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
}

TEST(Ahead, EndsItsThreadWhereNobodyTakesTheRest) {
  bool reached_the_end = false;
  {
    Ahead ahead([&](const Ahead::Take& take) {
      count_up(take);
      reached_the_end = true;
    });
    EXPECT_EQ(ahead.next().index, 0);
  }
  EXPECT_FALSE(reached_the_end);
}

TEST(Ahead, EndsItsThreadWhereThatWaitsForRoom) {
  std::atomic<std::int64_t> computed = 0;
  {
    Ahead ahead([&](const Ahead::Take& take) {
      count_up([&](const ExpectedEntry& entry) {
        ++computed;
        take(entry);
      });
    });
    for (std::int64_t seen = -1; seen < 1 || seen != computed;) {
      seen = computed;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  EXPECT_LT(computed, kMany);
}

TEST(Ahead, HandsOnWhatTheStreamThrewBehindTheEntriesBeforeIt) {
  Ahead ahead([](const Ahead::Take& take) {
    take({.output = 0, .index = 7, .value = {}});
    throw std::runtime_error("no more");
  });
  EXPECT_EQ(ahead.next().index, 7);
  EXPECT_THROW(ahead.next(), std::runtime_error);
}

}  // namespace
}  // namespace lossgate::properties
