"""Validates every golden line with pydantic against the generated types: golden.py MODULE FOLDER."""

import json
import sys
import types
from pathlib import Path

from pydantic import TypeAdapter, ValidationError


def load(path: Path) -> types.ModuleType:
    """The generated module, with the TypedDict that pydantic can look into on older versions of Python."""
    module = types.ModuleType("agentd_protocol")
    sys.modules[module.__name__] = module
    text = path.read_text().replace("from typing import", "from typing_extensions import")
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def usage_restored(fields: dict[str, object]) -> dict[str, object]:
    """What the normaliser of the transcripts takes out is put back."""
    zeros = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    if fields.get("usage") == "<usage>":
        fields["usage"] = {**zeros, "totalTokens": 0, "cost": {**zeros, "total": 0}}
    return fields


def main() -> None:
    protocol = load(Path(sys.argv[1]))
    adapters = {name: TypeAdapter(getattr(protocol, name)) for name in ("Command", "Response", "Event")}
    index = json.loads((Path(__file__).parents[3] / "schemas/index.json").read_text())
    checked = 0
    for file in sorted(Path(sys.argv[2]).glob("*.jsonl")):
        for number, text in enumerate(file.read_text().split("\n"), 1):
            mark, body = text[:2], text[2:]
            if mark not in ("> ", "< "):
                continue
            try:
                line = json.loads(body, object_hook=usage_restored)
            except ValueError:
                assert mark == "> ", f"{file.name}:{number} came, and is no JSON"
                continue
            if mark == "> ":
                # Lines that are sent to be refused.
                if not isinstance(line, dict) or line.get("type") not in index["commands"]:
                    continue
                if line["type"] == "prompt" and not isinstance(line.get("message"), str):
                    continue
            kind = "Command" if mark == "> " else "Response" if line["type"] == "response" else "Event"
            try:
                adapters[kind].validate_python(line, strict=True)
            except ValidationError as error:
                own = [entry for entry in error.errors() if "literal" not in entry["type"]]
                sys.exit(f"{file.name}:{number} is no {kind}: {own[:5]}\n{body}")
            checked += 1
    assert checked > 100, f"only {checked} golden lines were found"
    for wrong in ({"type": "promt", "message": "x"}, {"type": "prompt"}):
        try:
            adapters["Command"].validate_python(wrong)
        except ValidationError:
            continue
        sys.exit(f"{wrong} passes for a command")
    print(f"{checked} lines")


main()
