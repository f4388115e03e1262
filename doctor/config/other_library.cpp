#include "doctor/config/other_library.h"

#include "doctor/config/known_keys.h"

namespace devsan::doctor {
namespace {

std::size_t count_known(const Json& config, Library library) {
  const KnownKeys& known = known_keys();
  std::size_t count = 0;
  for (const auto& [key, value] : config.items()) {
    const bool own = library == Library::accelerate
                         ? has_word(known.accelerate_keys, key) || has_word(known.accelerate_sagemaker, key)
                         : known.sections.at("").keys.contains(key) || known.removed.contains(key);
    count += own ? 1 : 0;
  }
  return count;
}

}  // namespace

void refuse_of_other_library(Document& document, Library expected) {
  if (!document.readable()) return;
  const bool wants_deepspeed = expected == Library::deepspeed;
  const std::size_t own = count_known(document.value, expected);
  const std::size_t other = count_known(document.value, wants_deepspeed ? Library::accelerate : Library::deepspeed);
  // Both know fp16, and a key may have been put into the wrong file.
  if (own > 1 || other <= own) return;
  document.error = std::string("looks like a config of ") + (wants_deepspeed ? "accelerate" : "DeepSpeed") +
                   " by its keys, not of " + (wants_deepspeed ? "DeepSpeed" : "accelerate");
  document.cure = std::string("Give it with ") + (wants_deepspeed ? "--accelerate" : "--deepspeed") + ".";
}

}  // namespace devsan::doctor
