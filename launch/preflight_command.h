// The options of `devsan preflight`.
#pragma once

#include "launch/preflight.h"

namespace CLI {
class App;
}

namespace devsan::launch {

void add_preflight_options(CLI::App& command, PreflightRequest& request);

}  // namespace devsan::launch
