#include "report/ranking/context.h"

namespace devsan::report::ranking {

void set_text(const Context&, Candidate& candidate) {
  const Traits& own = candidate.own_said;
  const Traits& line = candidate.said;
  const auto set = [&](Feature feature, bool value) { candidate[feature] = value ? 1 : 0; };
  set(Feature::own_moves, own.moves);
  set(Feature::own_gives_device, own.gives_device);
  set(Feature::own_to_host, own.to_host);
  const bool part = candidate.own && candidate.own != candidate.statement;
  const Traits whole = traits_of(candidate.statement);
  set(Feature::rest_moved, part && whole.places() && !own.places());
  set(Feature::line_moves, line.moves);
  set(Feature::line_to_host, line.to_host);
  set(Feature::line_names_accelerator, line.names_accelerator);
  set(Feature::line_speaks_of_device, line.speaks_of_device || line.gives_device);
  set(Feature::line_copies, line.copies);
  set(Feature::line_converts, line.converts);
  set(Feature::line_makes, line.makes);
  set(Feature::line_makes_alike, line.makes_alike);
  set(Feature::line_makes_layer, line.makes_layer);
  set(Feature::line_keeps_dtype, line.keeps_dtype);
  set(Feature::line_registers, line.registers);
  set(Feature::line_tests, line.tests);
  set(Feature::dtype_alone, line.moves && line.keeps_dtype && !line.speaks_of_device && !line.names_accelerator);
}

}  // namespace devsan::report::ranking
