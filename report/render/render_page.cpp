#include "report/render/render_page.h"

#include <nlohmann/json.hpp>

#include "report/render/page_data.h"

namespace devsan::report {
namespace {

constexpr std::string_view kDataMark = "<!--devsan:data-->";

// Text in a script element ends at `</script`, whatever it is in JSON, where '<' stands in texts alone. The two
// separators are line ends in older JavaScript.
std::string as_element(std::string_view name, const Json& data) {
  const std::string json = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string element = "<script type=\"application/json\" data-part=\"" + std::string(name) + "\">";
  element.reserve(element.size() + json.size() + 16);
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '<') {
      element += "\\u003c";
    } else if (json.compare(i, 3, "\u2028") == 0 || json.compare(i, 3, "\u2029") == 0) {
      element += json[i + 2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      element += json[i];
    }
  }
  return element + "</script>\n";
}

}  // namespace

std::string render_page(const Report& report, const Sources& sources) {
  const std::string data =
      as_element("head", page_head(report, sources)) + as_element("operators", page_operators(report.run)) +
      as_element("memory", page_memory(report.run)) + as_element("timeline", page_timeline(report.run));
  std::string page(kPage);
  page.replace(page.find(kDataMark), kDataMark.size(), data);
  return page;
}

}  // namespace devsan::report
