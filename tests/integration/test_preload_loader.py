"""The loader's functions do for a program exactly what they do without devsan, though they are interposed."""

import pathlib

import pytest

from preload_toys import preload, toys  # noqa: F401 (fixtures)


@pytest.fixture(params=["RUNPATH", "RPATH"])
def facts(request, toys):
    """A program and a library of it that finds another by its own search path, which no other object has."""
    kind = request.param.lower()
    toys.shared(f"{kind}/lib/below/libsibling.so", "sibling.c", "-DWHICH=1")
    # In the way of a search that starts from the program or from libdevsan.so.
    toys.shared(f"{kind}/bin/libsibling.so", "sibling.c", "-DWHICH=2")
    tags = "--enable-new-dtags" if request.param == "RUNPATH" else "--disable-new-dtags"
    finder = toys.shared(f"{kind}/lib/libfinder.so", "finder.c", f"-Wl,{tags},-rpath,$ORIGIN/below")
    return toys.build(f"{kind}/bin/facts", "loader_facts.c", f"-L{finder.parent}", "-lfinder", "-rdynamic",
                      f"-Wl,{tags},-rpath,$ORIGIN/../lib", "-lpthread")


def test_the_loader_answers_as_without_devsan(preload, facts):
    plain = preload.plain(facts)
    assert "by search path: 1" in plain.stdout and "by $ORIGIN: 1" in plain.stdout
    assert "in a namespace of its own: 1" in plain.stdout
    assert preload.run(facts) == plain


@pytest.mark.parametrize("order", ["first", "last"])
def test_a_wrapper_of_malloc_reaches_the_real_one(preload, facts, toys, order):
    wrapper = toys.shared("libmalloc_wrapper.so", "malloc_wrapper.c")
    wrapper = link_without_space(wrapper, preload)
    plain = preload.plain(facts, env={"LD_PRELOAD": str(wrapper)})
    assert plain.stderr == "malloc was called: 1\n"
    both = [preload.library, wrapper] if order == "first" else [wrapper, preload.library]
    assert preload.run(facts, preload=both) == plain


@pytest.mark.parametrize("order", ["first", "last"])
def test_another_tool_before_dlsym_still_gets_its_turn(preload, toys, order):
    tool = link_without_space(toys.shared("libdlopen_wrapper.so", "dlopen_wrapper.c"), preload)
    plugin = toys.shared("libplugin.so", "plugin.c", *toys.link_torch)
    host = toys.build("host", "host.c", "-rdynamic")
    plain = preload.plain(host, "symbol", plugin, env={"LD_PRELOAD": str(tool)})
    assert plain.stderr == "a tool saw entry\n"
    both = [preload.library, tool] if order == "first" else [tool, preload.library]
    run = preload.run(host, "symbol", plugin, preload=both)
    assert (run.status, run.stderr) == (plain.status, plain.stderr)


def link_without_space(path, preload):
    """LD_PRELOAD cannot name a path with a space in it."""
    if " " not in str(path):
        return path
    link = pathlib.Path(preload.folder.parent / pathlib.Path(path).name)
    if not link.exists():
        link.symlink_to(path)
    return link
