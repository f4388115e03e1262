#include "hooks/torch_bridge/examine.h"

#include <exception>

#include "hooks/inprocess/interpreter/code_api.h"
#include "hooks/inprocess/interpreter/python_frames.h"
#include "hooks/inprocess/snapshot/device_source.h"
#include "hooks/inprocess/snapshot/home_device.h"
#include "hooks/inprocess/snapshot/names.h"

namespace devsan::hooks {

void examine(const void* innermost, const void* waited_for, trace::SiteId site, OperandList& operands,
             Facts& facts) noexcept {
  try {
    ObjectSearch search(operands.records(), operands.identities(), site);
    search.run(innermost);
    if (waited_for != nullptr) search.run_other_threads(waited_for);
    give_names(search, operands.records(), operands.identities(), site);
    mark_home(search, innermost, operands.records(), operands.identities());
    if (!code_api().complete) return;
    facts = gather_facts(search, innermost, waited_for, operands.records(), operands.identities());
    follow_device_sources(search, innermost, operands.records());
  } catch (const std::exception&) {  // names are worth no failure
  }
}

void find_names(const void* thread, trace::SiteId site, OperandList& operands) noexcept {
  try {
    ObjectSearch search(operands.records(), operands.identities(), site);
    search.run(current_frame(thread));
    give_names(search, operands.records(), operands.identities(), site);
  } catch (const std::exception&) {  // names are worth no failure
  }
}

}  // namespace devsan::hooks
