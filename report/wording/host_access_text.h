// Sentences about code on the host that follows a device pointer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/model/finding.h"
#include "trace/reader.h"

namespace devsan::report {

// What the process wrote down of the access; none where it did not.
std::optional<HostAccess> host_access_of(const trace::TraceFile& trace, const trace::Meeting& meeting);

// "read_first (libreader.so) reads memory of cuda:0 on the host"
std::string host_access_headline(const Finding& finding);

// Says what owns the memory, why that is a mistake, and what to do instead.
void explain_host_access(Finding& finding);

// A C++ symbol as it is written in source; any other as it is.
std::string readable_symbol(std::string_view symbol);

}  // namespace devsan::report
