// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/choices.h"

namespace lossgate::fuzz {

/// What kind of cases a run asks for.
enum class Profile {
  benign,   ///< what an ordinary unit test would see
  hostile,  ///< nine out of ten cases sit on some edge
  soak,     ///< hostile, now and then larger and more extreme
};

inline constexpr Profile kAllProfiles[] = {Profile::benign, Profile::hostile, Profile::soak};

constexpr std::string_view name(Profile profile) {
  switch (profile) {
    case Profile::benign:
      return "benign";
    case Profile::hostile:
      return "hostile";
    case Profile::soak:
      return "soak";
  }
  return "?";
}

constexpr std::optional<Profile> parse_profile(std::string_view text) {
  for (Profile profile : kAllProfiles) {
    if (name(profile) == text) return profile;
  }
  return std::nullopt;
}

/// How one axis of one case is drawn.
enum class Temper { plain, nasty, extreme };

/// One row of an axis's table: a kind of value, and its weight in each temper. The first row is the
/// simplest kind and has a weight in every temper.
template <class Kind>
struct Share {
  Kind kind;
  std::array<int, 3> weights;  ///< plain, nasty, extreme
};

template <class Kind, std::size_t n>
Kind pick(const Share<Kind> (&table)[n], Temper temper, Choices& choices) {
  std::array<int, n> weights;
  for (std::size_t i = 0; i < n; ++i) {
    weights[i] = table[i].weights[static_cast<std::size_t>(temper)];
  }
  return table[choices.weighted(weights)].kind;
}

/// How the kinds of an axis lie in a case: one kind everywhere, another in each sequence, or
/// another at each position.
enum class Spread { whole, sequences, positions };

/// From so many positions on a plain case, too, holds all that is plain: thousands of one kind show
/// no more than one of it.
inline constexpr std::int64_t kMany = 512;

inline Spread pick_spread(Temper temper, std::int64_t positions, Choices& choices) {
  if (temper == Temper::plain) return positions < kMany ? Spread::whole : Spread::positions;
  constexpr int kWeights[] = {1, 2, 9};  // a case of one kind shows one thing
  return static_cast<Spread>(choices.weighted(kWeights));
}

/// The kinds of a table that have a weight, dealt to the parts of one case: none comes again before
/// all were there, so that few parts hold many kinds, and of those first that weigh most. Parts
/// that are masked are dealt to apart, or what they got would be lost. A plain case deals out
/// nothing: there each kind comes as often as it weighs.
template <class Kind>
class Deal {
 public:
  template <std::size_t n>
  Deal(const Share<Kind> (&table)[n], Temper temper) : plain_(temper == Temper::plain) {
    Deck& deck = decks_[0];
    for (const auto& [kind, weights] : table) {
      const int weight = weights[static_cast<std::size_t>(temper)];
      if (weight > 0) deck.kinds.push_back(kind), deck.weights.push_back(weight);
    }
    decks_[1] = deck;
  }

  Kind next(Choices& choices, bool counts = true) {
    Deck& deck = decks_[counts];
    if (plain_) return deck.kinds[choices.weighted(deck.weights)];
    if (deck.left == 0) deck.left = deck.kinds.size();
    const std::size_t at = choices.weighted(std::span(deck.weights).first(deck.left--));
    std::swap(deck.kinds[at], deck.kinds[deck.left]);
    std::swap(deck.weights[at], deck.weights[deck.left]);
    return deck.kinds[deck.left];
  }

 private:
  struct Deck {
    std::vector<Kind> kinds;
    std::vector<int> weights;
    std::size_t left = 0;  ///< that this round has not dealt yet
  };
  bool plain_;
  std::array<Deck, 2> decks_;  ///< of what is masked, of what counts
};

/// The tempers of a case's axes. A hostile case is nasty on most of them or on all. What is extreme
/// at every position shows one overflow and hides every other fault behind it, so most axes hold
/// milder kinds beside (Deal).
class Tempers {
 public:
  Tempers(Profile profile, Choices& choices) : profile_(profile) {
    if (profile == Profile::benign) return;
    choices.enter("temper");
    constexpr double kShares[] = {0.75, 1.0};
    nasty_share_ = choices.one_of(kShares);
  }

  Temper next(Choices& choices) const {
    if (profile_ == Profile::benign || !choices.sometimes(nasty_share_)) return Temper::plain;
    if (profile_ == Profile::soak && choices.sometimes(0.25)) return Temper::extreme;
    return Temper::nasty;
  }

 private:
  Profile profile_;
  double nasty_share_ = 0.0;
};

}  // namespace lossgate::fuzz
