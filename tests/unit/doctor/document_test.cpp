#include "doctor/config/document.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "../launch/temporary_directory.h"

using namespace devsan::doctor;

namespace {

Document json(const std::string& text) {
  return parse_json_config("c.json", text);
}
Document yaml(const std::string& text) {
  return parse_yaml_config("c.yaml", text);
}

std::string nested(const std::string& open, const std::string& close, int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += "1";
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

}  // namespace

TEST_CASE("what is not JSON says where") {
  CHECK(json("{\"a\": 1,\n \"b\": }").error == "is not JSON at line 2, column 7");
  CHECK(json("").error == "is not JSON at line 1, column 1");
  CHECK(json("[1, 2]").error == "holds no object of keys and values");
  CHECK(json("\"text\"").error == "holds no object of keys and values");
  CHECK_FALSE(json(std::string("{\"a\": \"\xff\"}")).readable());
}

TEST_CASE("comments and trailing commas are read, and told") {
  const Document document = json("// a\n{\"a\": 1, # b\n \"b\": [1, 2,], /* c */ \"c\": \"// , } text\",\n}\n");
  REQUIRE(document.readable());
  CHECK(document.only_relaxed);
  CHECK(document.value["c"] == "// , } text");
  CHECK(document.value["b"].size() == 2);
  CHECK_FALSE(json("{\"a\": \"# no comment\"}").only_relaxed);
}

TEST_CASE("keys that stand there twice are named with their sections") {
  const Document document = json(R"({"a": {"b": 1, "c": {"b": 2}, "b": 3}, "d": [{"e": 1}, {"e": 2}], "a": 4})");
  CHECK(document.doubled == std::vector<std::string>{"a.b", "a"});
}

TEST_CASE("a byte order mark is passed over") {
  CHECK(json("\xEF\xBB\xBF{}").readable());
}

TEST_CASE("what is nested too deeply is refused") {
  CHECK(json(nested("{\"a\":", "}", 5000)).error.find("deep") != std::string::npos);
  CHECK(yaml("a: " + nested("[", "]", 5000)).error.find("deep") != std::string::npos);
  CHECK(json(nested("{\"a\":", "}", 20)).readable());
}

TEST_CASE("YAML's scalars are what PyYAML makes of them") {
  const Document document = yaml(
      "a: yes\nb: 'no'\nc: 012\nd: 0x1F\ne: 1e9\nf: 1.5e+3\ng: ~\nh:\ni: [1, off]\nj: 1_000\nk: -3\nl: text # "
      "comment\n");
  REQUIRE(document.readable());
  const Json expected = Json::parse(
      R"({"a": true, "b": "no", "c": 10, "d": 31, "e": "1e9", "f": 1500.0, "g": null, "h": null, "i": [1, false], "j": 1000, "k": -3, "l": "text"})");
  CHECK(document.value == expected);
}

TEST_CASE("what is not YAML says where") {
  CHECK(yaml("a: 1\n b: 2\n").error == "is not YAML at line 2, column 3");
  CHECK(yaml("a: [1\n").error.find("is not YAML at line") == 0);
  CHECK(yaml("").error == "holds no object of keys and values");
  CHECK(yaml("- 1\n").error == "holds no object of keys and values");
}

TEST_CASE("an alias that would make a file grow without bounds is not followed") {
  CHECK(yaml("a: &x [1]\nb: [*x, *x]\n").error.find("alias") != std::string::npos);
}

TEST_CASE("keys that stand twice in YAML are named") {
  CHECK(yaml("a: 1\nb: {c: 1, c: 2}\na: 2\n").doubled == std::vector<std::string>{"b.c", "a"});
}

TEST_CASE("only a regular file of a config's size is read") {
  devsan::launch::TemporaryDirectory folder;
  CHECK(read_config(folder.path() / "missing.json").error == "cannot be read: No such file or directory");
  CHECK(read_config(folder.path()).error == "is no file");
  const std::string pipe = (folder.path() / "pipe.json").string();
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(read_config(pipe).error == "is no file");
  CHECK(read_config(folder.write("big.json", std::string(10 << 20, ' '))).error.find("1 MiB") != std::string::npos);
  CHECK(read_config(folder.write("a.yml", "a: 1")).value["a"] == 1);
  CHECK(read_config(folder.write("a.json", "{\"a\": 1}")).value["a"] == 1);
}

TEST_CASE("a value that is shown is short and whole characters") {
  CHECK(shown(Json("x")) == "\"x\"");
  const std::string long_text = shown(Json(std::string(50, 'x')));
  CHECK(long_text.size() == 40);
  CHECK(shown(Json(std::string("\xc3\xa4") + std::string(50, 'x'))).find("\xc3\xa4") == 1);
  std::string umlauts;
  for (int i = 0; i < 30; ++i) umlauts += "\xc3\xa4";
  CHECK(shown(Json(umlauts)).size() % 2 == 0);
}

TEST_CASE("a file of more keys than any config has is refused in little time") {
  std::string yaml;
  std::string json = "{";
  for (int k = 0; k < 60'000; ++k) {
    yaml += "key" + std::to_string(k) + ": 1\n";
    json += (k > 0 ? "," : "") + std::string("\"key") + std::to_string(k) + "\": 1";
  }
  CHECK_THAT(parse_yaml_config("a.yaml", yaml).error, Catch::Contains("keys"));
  CHECK_THAT(parse_json_config("a.json", json + "}").error, Catch::Contains("keys"));
}
