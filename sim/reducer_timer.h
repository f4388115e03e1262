// The clock of DistributedDataParallel.
#pragma once

namespace devsan::sim {

void register_reducer_timer();

}  // namespace devsan::sim
