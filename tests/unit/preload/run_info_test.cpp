#include "preload/run_info.h"

#include <catch2/catch.hpp>
#include <initializer_list>
#include <string>

namespace {

std::string masked(std::initializer_list<const char*> arguments) {
  std::string text;
  for (const char* argument : arguments) text.append(argument).push_back('\0');
  return std::string(devsan::masked_command(text).view());
}

}  // namespace

TEST_CASE("a command without secrets is what was typed") {
  CHECK(masked({"python", "train.py", "--lr", "0.1", "-v"}) == "python train.py --lr 0.1 -v");
  CHECK(masked({}).empty());
}

TEST_CASE("arguments are quoted as a shell needs them") {
  CHECK(masked({"python", "-c", "print(1)", "two words", "", "it's"}) ==
        "python -c 'print(1)' 'two words' '' 'it'\\''s'");
}

TEST_CASE("the value of an option whose name says secret is masked") {
  CHECK(masked({"x", "--hf-token=abc", "--lr=1"}) == "x --hf-token=*** --lr=1");
  CHECK(masked({"x", "--api-key", "abc", "file"}) == "x --api-key *** file");
  CHECK(masked({"x", "--PASSWORD", "abc"}) == "x --PASSWORD ***");
  CHECK(masked({"x", "--client_secret_value=a b"}).find("a b") == std::string::npos);
  CHECK(masked({"x", "--use-auth-token", "--lr", "1"}) == "x --use-auth-token --lr 1");
}

TEST_CASE("NAME=VALUE is masked by its name, inside a program given on the command line too") {
  CHECK(masked({"env", "WANDB_API_KEY=abc", "LR=1"}) == "env WANDB_API_KEY=*** LR=1");
  const std::string program = masked({"python", "-c", "login(token = 'top secret', n=3)"});
  CHECK(program.find("top") == std::string::npos);
  CHECK(program.find("n=3") != std::string::npos);
  CHECK(masked({"curl", "-H", "Authorization: Bearer abc.def"}).find("abc.def") == std::string::npos);
  CHECK(masked({"x", "http://h/p?token=abc&n=1"}).find("abc") == std::string::npos);
}

TEST_CASE("the password in a URL is masked, and a URL without one is left alone") {
  CHECK(masked({"x", "--db=postgres://me:secret1@host:5432/db"}) == "x --db=postgres://me:***@host:5432/db");
  CHECK(masked({"x", "tcp://10.0.0.1:29500"}) == "x tcp://10.0.0.1:29500");
  CHECK(masked({"x", "git@host:repository"}) == "x git@host:repository");
}

TEST_CASE("a command longer than there is room for is cut off") {
  const std::string longest(20000, 'a');
  CHECK(masked({longest.c_str()}).size() < longest.size());
}
