"""What `devsan view --json` writes is what report/render/report.schema.json and docs/report-schema.md say."""

import json
import re

import jsonschema
import pytest

from harness import ROOT

SCHEMA = json.loads((ROOT / "report/render/report.schema.json").read_text())
DOCUMENT = (ROOT / "docs/report-schema.md").read_text()

MISMATCHES = """
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            self.bias = torch.ones(3)

        def forward(self, x):
            return self.linear(x) * torch.tensor(0.5) + self.bias

    net = Net().to("cuda")
    try:
        net(torch.ones(2, 3, device="cuda"))
    except RuntimeError:
        pass
    torch.randn(3, generator=torch.Generator(), device="cuda")
"""


def closed(schema):
    """The schema with every object limited to the fields that it lists."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if "properties" in result and result.get("type") == "object":
        result["additionalProperties"] = False
    return result


def property_names(schema):
    if isinstance(schema, list):
        return set().union(*map(property_names, schema))
    if not isinstance(schema, dict):
        return set()
    names = set(schema["properties"]) if isinstance(schema.get("properties"), dict) else set()
    return names.union(*map(property_names, schema.values()))


@pytest.fixture
def report(run_python):
    result = run_python(MISMATCHES, sim=1, options=["--quiet"])
    assert result.raised(), "the program should have met a mismatch"
    return result.report


def test_schema_itself_is_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_report_follows_the_schema_and_has_no_field_beyond_it(report):
    jsonschema.Draft202012Validator(closed(SCHEMA)).validate(report)


def test_schema_refuses_what_is_no_report(report):
    del report["findings"][0]["severity"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(report)


def test_every_field_is_documented():
    documented = set(re.findall(r"`(\w+)`", DOCUMENT))
    assert property_names(SCHEMA) - documented == set()


def test_a_cause_has_the_name_of_a_page_and_how_sure_it_is(report):
    causes = [f["root_cause"] for f in report["findings"] if f["raised"]]
    assert causes and all(causes)
    for cause in causes + [other for f in report["findings"] for other in f["alternatives"]]:
        assert (ROOT / f"docs/causes/{cause['mechanism']}.md").exists(), cause
        assert cause["confidence"] in ("likely", "possible")
    assert all(other["confidence"] == "possible" for f in report["findings"] for other in f["alternatives"])


def test_kinds_are_those_of_the_sources():
    source = (ROOT / "trace/finding_kinds.def").read_text()
    kinds = re.findall(r'^DEVSAN_FINDING_KIND\(\w+, "([\w-]+)", (\w+),\s*"(.*)"\)$', source, re.M)
    assert len(kinds) == 15
    assert [name for name, _, _ in kinds] == SCHEMA["$defs"]["finding"]["properties"]["kind"]["enum"]
    rows = re.findall(r"^\| `([\w-]+)` \| (error|warning|note) \| (.+) \|$", DOCUMENT, re.M)
    assert rows == kinds
