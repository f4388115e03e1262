#include <algorithm>

#include "report/ranking/context.h"

namespace devsan::report::ranking {

using slice::Aspect;
using slice::Place;
using slice::Role;
using slice::Side;

namespace {

Feature odd_feature(Role role) {
  return static_cast<Feature>(static_cast<std::size_t>(Feature::odd_result_dropped) + static_cast<std::size_t>(role));
}

Feature other_feature(Role role) {
  return static_cast<Feature>(static_cast<std::size_t>(Feature::other_result_dropped) + static_cast<std::size_t>(role));
}

void raise(Candidate& candidate, Feature feature, double value) {
  candidate[feature] = std::max(candidate[feature], static_cast<float>(value));
}

bool is_history(Role role) {
  return role >= Role::history_created;
}

void set_aspect(const Place& place, Candidate& candidate, double near) {
  raise(candidate, place.side == Side::odd ? Feature::near_odd : Feature::near_other, near);
  if (place.side == Side::other) {
    if (place.aspect == Aspect::device) raise(candidate, Feature::near_other_device, near);
    return;
  }
  switch (place.aspect) {
    case Aspect::value:
      return raise(candidate, Feature::near_as_value, near);
    case Aspect::module:
      return raise(candidate, Feature::near_as_module, near);
    case Aspect::device:
      return raise(candidate, Feature::near_as_device, near);
  }
}

void set_device_role(Role role, Candidate& candidate, double near) {
  switch (role) {
    case Role::moved:
      return raise(candidate, Feature::device_moved, near);
    case Role::bound:
      return raise(candidate, Feature::device_bound, near);
    case Role::argument:
      return raise(candidate, Feature::device_given, near);
    case Role::default_used:
    case Role::default_stands_by:
      return raise(candidate, Feature::device_default, near);
    case Role::stored:
      return raise(candidate, Feature::device_stored, near);
    case Role::argument_left_out:
      return raise(candidate, Feature::device_left_out, near);
    default:
      return;
  }
}

}  // namespace

void set_distances(const Context&, Candidate& candidate) {
  for (const Place* place : candidate.places) {
    const double near = nearness(place->distance);
    if (place->side == Side::program) {
      raise(candidate, odd_feature(place->role), place->role == Role::on_stack ? near : 1);
      continue;
    }
    raise(candidate, place->side == Side::odd ? odd_feature(place->role) : other_feature(place->role), near);
    if (is_history(place->role)) continue;
    set_aspect(*place, candidate, near);
    if (place->side == Side::odd && place->aspect == Aspect::device) set_device_role(place->role, candidate, near);
  }
  candidate[Feature::on_both_sides] = candidate[Feature::near_odd] > 0 && candidate[Feature::near_other] > 0 ? 1 : 0;
  candidate[Feature::nearer_to_odd] = candidate[Feature::near_odd] - candidate[Feature::near_other];
}

}  // namespace devsan::report::ranking
