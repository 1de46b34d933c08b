"""Holds a bill of materials against the schema of CycloneDX, against Cargo.lock, and against what cargo says is built."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

repository, path = Path(sys.argv[1]), Path(sys.argv[2])
text = path.read_text()
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
assert error is None, error
bill = json.loads(text)
target = path.name.removesuffix(".cdx.json").split("-", 2)[2]


def built(edges):
    """Name and version of every crate of the two programs."""
    command = ["cargo", "tree", "--locked", "--target", target, "--edges", edges, "--prefix", "none", "-p", "agentd", "-p", "agentctl", "-p", "agentd-syntax-program"]
    lines = subprocess.run(command, cwd=repository, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {tuple(line.split(" ")[:2]) for line in lines if line}


components = {(each["name"], "v" + each["version"]): each for each in bill["components"]}
assert len(components) == len(bill["components"]), "a crate stands there twice"
everything, linked = built("normal,build"), built("normal,no-proc-macro")
assert components.keys() == everything, components.keys() ^ everything
required = {key for key, each in components.items() if each["scope"] == "required"}
assert required == linked, required ^ linked

lock = tomllib.loads((repository / "Cargo.lock").read_text())
locked = {(each["name"], "v" + each["version"]): each for each in lock["package"]}
for key, each in components.items():
    hashes = [each["content"] for each in each.get("hashes", [])]
    assert hashes == [checksum for checksum in [locked[key].get("checksum")] if checksum], key
known = {each["bom-ref"] for each in bill["components"]} | {bill["metadata"]["component"]["bom-ref"]}
assert {each["ref"] for each in bill["dependencies"]} == known
assert all(used in known for each in bill["dependencies"] for used in each["dependsOn"])
print(f"{len(components)} of the {len(locked)} crates in Cargo.lock, {len(required)} of them linked")
