// Patterns of names: `layers.{0-11}.mlp`, `*.fp32_partitioned_groups_flat[*]`, `{encoder,decoder}.norm`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devsan::rules {

// "12"; none for any other text.
std::optional<std::int64_t> natural_number(std::string_view text);

// `*` stands for any text, `?` for one character, `{0-3}` for a number from 0 to 3, `{a,b}` for one of several texts.
class Pattern {
 public:
  static constexpr std::size_t kMaxLength = 512;
  static constexpr std::size_t kMaxBraces = 16;
  static constexpr std::size_t kMaxAlternatives = 256;

  struct Error {
    std::size_t at = 0;
    std::string text;
  };

  // What is wrong with it is in `error`.
  static std::optional<Pattern> parse(std::string_view text, Error* error);

  // Whether it is the name, or a run of its whole components: `experts.2` is in `moe.experts.2.weight`. Takes time in
  // proportion to the product of the lengths, whatever is in the braces.
  bool matches(std::string_view name) const;

 private:
  struct Token {
    enum class What : unsigned char { text, any, one, numbers, alternatives };
    What what;
    std::string text{};
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges{};
    std::vector<std::string> alternatives{};
  };

  static std::optional<Token> parse_braces(std::string_view inside, std::size_t at, Error* error);
  static bool read_numbers(Token& token, std::size_t at, Error* error);
  static void advance(const Token& token, std::string_view name, const std::vector<char>& from, std::vector<char>& to);

  std::vector<Token> tokens_;
};

}  // namespace devsan::rules
