// Places in source as SARIF has them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "report/model/run.h"
#include "report/render/render_json_parts.h"

namespace devsan::report {

// The name of the base that relative places refer to.
inline constexpr const char* kSarifBase = "PROGRAM";

class SarifPlaces {
 public:
  // An absolute directory, or nothing.
  explicit SarifPlaces(std::string base);

  // {"uri": …, "uriBaseId": …}
  Json artifact(const std::string& file) const;
  // A location; code that is in no file has a logical one alone.
  Json location(const Frame& frame) const;
  Json location(const std::string& file, int line, const std::string& function) const;
  // Of the run: null where no base is known.
  Json bases() const;

 private:
  std::string base_;  // ends in a slash
};

// The directory that all of the program's own files in the report are in; empty where there are none.
std::string common_directory(const Report& report);
// Whether the report names a file of the program below the directory.
bool has_file_below(const Report& report, const std::string& directory);

// One replacement for each change of a unified diff.
Json sarif_replacements(std::string_view diff);

}  // namespace devsan::report
