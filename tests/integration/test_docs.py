"""What the documentation lists is what the sources have."""

import re

from harness import ROOT


def test_every_option_is_documented_with_its_own_words():
    declared = re.findall(r'^DEVSAN_OPTION\([^,]+, (\w+), [^,]+, "(.*)"\)$', (ROOT / "trace/options.def").read_text(), re.M)
    rows = re.findall(r"^\| `(\w+)` \| .+? \| (.+) \|$", (ROOT / "docs/options.md").read_text(), re.M)
    assert len(declared) >= 7
    assert [name for name, _ in rows] == [name for name, _ in declared]
    for (_, told), (name, help_text) in zip(rows, declared):
        assert help_text.startswith(told), name


def test_links_between_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/*.md")]:
        prose = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_every_mechanism_has_a_page_with_its_title_and_an_example():
    declared = re.findall(r'^DEVSAN_MECHANISM\((\w+), "([^"]+)",', (ROOT / "report/causes/mechanisms.def").read_text(), re.M)
    assert 10 <= len(declared) <= 20
    index = (ROOT / "docs/causes/README.md").read_text()
    assert re.findall(r"^1\. \[(.+)\]\((\w+)\.md\)$", index, re.M) == [(title, name) for name, title in declared]
    pages = {path.stem for path in (ROOT / "docs/causes").glob("*.md")} - {"README"}
    assert pages == {name for name, _ in declared}
    for name, title in declared:
        page = (ROOT / f"docs/causes/{name}.md").read_text()
        assert page.startswith(f"# {title}\n") and page.count("```python\n") == 2 and "**The change.**" in page, name


def test_every_kind_of_fact_is_documented():
    declared = re.findall(r'^DEVSAN_\w+\(\w+, \d+, "(\w+)"\)$', (ROOT / "trace/fact_kinds.def").read_text(), re.M)
    page = (ROOT / "docs/facts.md").read_text().partition("An **object** has")[2]
    assert len(declared) >= 40
    assert not [name for name in declared if f"`{name}`" not in page]
