"""What a user reads before anything else: the first page of help, the man page, and what a shell completes."""

import os
import re
import shutil
import subprocess

import pytest

from terminal import Terminal

COMMANDS = ["run", "preflight", "view", "diff", "collect", "doctor", "rules", "learn", "build", "lib"]
FILES = {
    "man": "man/man1/devsan.1",
    "bash": "bash-completion/completions/devsan",
    "zsh": "zsh/site-functions/_devsan",
    "fish": "fish/vendor_completions.d/devsan.fish",
}


def ask(devsan, *words):
    return subprocess.run([devsan, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)


def options_of(devsan, command):
    """The options that `devsan COMMAND --help` lists, each with its first words of help."""
    found = re.findall(r"^  (-\S+).*?  (\S.*)$", ask(devsan, command, "--help").stdout, re.M)
    return {name: text for names, text in found for name in names.split(",")}


@pytest.fixture(scope="module")
def installed(devsan):
    share = devsan.parent.parent / "share"
    return {name: share / path for name, path in FILES.items()}


# ---- help

def test_first_page_fits_a_terminal_and_shows_how_to_begin(devsan):
    done = ask(devsan, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    for example in ("devsan run -- python train.py", "devsan view devsan-out/", "LD_PRELOAD=$(devsan lib)"):
        assert any(line.startswith(f"  {example}") for line in lines), example
    assert re.findall(r"^  ([a-z]+)  ", done.stdout, re.M) == COMMANDS
    assert "devsan COMMAND --help" in done.stdout and "man devsan" in done.stdout


def test_devsan_alone_shows_the_first_page_as_an_error(devsan):
    done = ask(devsan)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ask(devsan, "--help").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_fits_80_columns(devsan, command):
    done = ask(devsan, command, "--help")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "--version" in options_of(devsan, command)


# ---- files that are made from the options

def test_installed_files_are_those_of_this_program(devsan, installed, tmp_path):
    done = ask(devsan, "write-reference", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for name, path in FILES.items():
        assert (tmp_path / path).read_text() == installed[name].read_text(), name


def test_place_that_cannot_be_written_is_named(devsan, tmp_path):
    (tmp_path / "man").write_text("in the way")
    done = ask(devsan, "write-reference", str(tmp_path))
    assert done.returncode == 1 and f"cannot create {tmp_path}/man/man1" in done.stderr


def sections(page):
    """The text of the man page by section, without roff's escapes."""
    plain = re.sub(r"\\f[BIR]|\\&", "", page).replace("\\-", "-").replace("\\e", "\\")
    parts = re.split(r"^\.S[HS] (.+)$", plain, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.mark.parametrize("command", COMMANDS)
def test_man_page_has_every_option_with_its_help(devsan, installed, command):
    section = sections(installed["man"].read_text())[f"devsan {command}"]
    options = options_of(devsan, command)
    assert len(options) >= 3
    for name, text in options.items():
        entry = re.search(rf"^\.TP\n.*{re.escape(name)}\b.*\n(.+)$", section, re.M)
        assert entry and entry[1].lower().startswith(text.lower().rstrip(".")), name


def test_man_page_has_every_section_and_every_option_of_a_traced_process(installed):
    found = sections(installed["man"].read_text())
    assert {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXIT STATUS", "ENVIRONMENT", "FILES",
            "EXAMPLES"} <= set(found)
    for name in ("sim_memory", "trace_size", "enabled"):
        assert f"\n{name}\n" in found["ENVIRONMENT"]


def test_man_page_is_made_of_known_macros(installed):
    lines = installed["man"].read_text().splitlines()
    used = {line.split()[0] for line in lines if line.startswith((".", "'"))}
    assert used <= {".TH", ".SH", ".SS", ".TP", ".PP", ".B", ".I", ".BR", ".IR", ".RS", ".RE", ".br", ".nh"}
    assert lines.count(".RS") == lines.count(".RE") == 1


def test_groff_takes_the_man_page_without_a_warning(installed):
    if shutil.which("groff") is None:
        pytest.skip("no groff here")
    done = subprocess.run(["groff", "-ww", "-man", "-Tutf8", installed["man"]], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "DEVSAN(1)" in done.stdout


# ---- completion

def complete(installed, words):
    """What bash offers for the last of `words`."""
    program = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _devsan; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "--norc", "-c", program, "bash", installed["bash"], *words], capture_output=True,
                          text=True, cwd=installed["bash"].parent.parent, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize("command", COMMANDS)
def test_bash_offers_every_option_of_a_command(devsan, installed, command):
    assert sorted(complete(installed, ["devsan", command, "-"])) == sorted(options_of(devsan, command))


@pytest.mark.parametrize("line, offered", [
    (["v"], ["view"]),
    (["run", "--fail-on", "any,async"], ["any,async-race"]),
    (["run", "--fail-on", "=", "dev"], ["device-mismatch"]),
    (["run", "--out", "comp"], ["completions"]),
    (["run", "--out", "=", "comp"], ["completions"]),
    (["run", "--sim", "2", "--qui"], ["--quiet"]),
    (["run", "--sim", ""], []),
    (["run", "--", "env", "comp"], ["completions"]),
    (["run", "--sim", "2", "env", "--s"], []),
    (["view", "--color", "al"], ["always"]),
    (["view", "comp"], ["completions"]),
])
def test_bash_completes_values_and_the_command_of_the_user(installed, line, offered):
    assert complete(installed, ["devsan", *line]) == offered


@pytest.mark.parametrize("command", ["run", "preflight"])
def test_a_command_of_the_users_is_named_where_one_follows(devsan, installed, command):
    shown = subprocess.run([devsan, command, "--help"], capture_output=True, text=True, check=True).stdout
    assert f"\nUsage: devsan {command} [OPTIONS] -- CMD [ARGUMENTS]...\n" in shown
    page = installed["man"].read_text()
    assert f".B devsan {command}\n[\\fIOPTIONS\\fR] \\fB\\-\\-\\fR \\fICMD\\fR" in page
    assert "[HOST:]DIR" in page


def test_tab_in_a_real_bash_lists_and_completes_options(installed, tmp_path):
    environment = {**os.environ, "PS1": "ready> ", "TERM": "dumb", "HISTFILE": ""}
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], environment, tmp_path)
    terminal.expect(b"ready> ")
    terminal.type(f"bind 'set show-all-if-ambiguous on'; source {installed['bash']}\r".encode())
    terminal.expect(b"ready> ")
    terminal.type(b"devsan run --s\t")
    listed = terminal.expect(b"ready> ")
    for option in (b"--sim", b"--sim-guard", b"--sim-late-copies", b"--sim-memory", b"--suppressions"):
        assert option in listed.split()
    terminal.type(b"u\t")
    terminal.expect(b"--suppressions")
    terminal.type(b"\x15exit\r")
    terminal.end()


@pytest.mark.parametrize("shell, check", [("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])])
def test_other_shells_read_their_completions(installed, shell, check):
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    done = subprocess.run([*check, installed[shell]], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_zsh_and_fish_have_every_option_of_a_command(devsan, installed, command):
    zsh = installed["zsh"].read_text().partition(f"\n    {command})\n")[2].partition("    ;;\n")[0]
    fish = [line for line in installed["fish"].read_text().splitlines() if f"'__devsan_is {command}'" in line]
    for name in options_of(devsan, command):
        assert f"){name}[" in zsh or f"){name}=[" in zsh, name
        letter = f" -l {name[2:]} " if name.startswith("--") else f" -s {name[1:]} "
        assert any(letter in line for line in fish), name
