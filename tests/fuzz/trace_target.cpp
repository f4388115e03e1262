// Traces of one or several processes, as far as findings.
#include "target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  devsan::fuzz::read_packed({data, size}, nullptr);
  return 0;
}
