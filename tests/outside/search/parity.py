"""grep and find give what ripgrep and fd give, each path in its place."""

import base64
import itertools
import json
import os
import subprocess
import sys
import tempfile

SEARCH = os.environ["AGENTD_SEARCH"].encode()


def write(root, name, content=b"needle\n"):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def tree(root):
    """A folder with everything that makes searching hard."""
    write(root, b"plain.txt", b"one\nneedle two\nthree\nNeedle four\n")
    write(root, b"no-end", b"x\nneedle at the end")
    write(root, b"crlf.txt", b"a\r\nneedle\r\nb\r\n")
    write(root, b"empty", b"")
    write(root, b"latin", b"caf\xe9 needle\n")
    write(root, b"bad-\xff-name.txt")
    write(root, b"with space.txt")
    write(root, b"utf16", "needle wide\n".encode("utf-16"))
    write(root, b"mark", b"\xef\xbb\xbfneedle behind a mark\n")
    write(root, b"binary", b"needle\n\0needle\n")
    write(root, b"binary-late", b"needle early\n" + b"-\n" * 100_000 + b"\0\nneedle late\n")
    write(root, b"long-line", b"y" * 1_000_000 + b"needle" + b"z" * 100 + b"\n")
    write(root, b".hidden/file")
    write(root, b".gitignore", b"ignored\n*.log\n!keep.log\n/only-here\nfolder/\nglob-*.tmp\n")
    for name in ["ignored", "a.log", "keep.log", "only-here", "sub/only-here", "sub/folder/x", "folder", "glob-1.tmp"]:
        if name != "folder":
            write(root, name.encode())
    write(root, b"sub/.gitignore", b"!ignored\ndeep/*\n!deep/kept\n")
    for name in ["sub/ignored", "sub/deep/gone", "sub/deep/kept", "sub/b.log"]:
        write(root, name.encode())
    write(root, b".ignore", b"by-ignore\n")
    write(root, b"by-ignore")
    write(root, b".rgignore", b"by-rgignore\n")
    write(root, b"by-rgignore")
    write(root, b".fdignore", b"by-fdignore\n")
    write(root, b"by-fdignore")
    # A repository in a repository, with rules of its own; and what git itself keeps.
    write(root, b".git/config", b"[core]\n# needle\n")
    write(root, b".git/info/exclude", b"excluded\n")
    write(root, b"excluded")
    write(root, b"nested/.git/HEAD", b"needle\n")
    write(root, b"nested/.gitignore", b"own\n")
    write(root, b"nested/own")
    write(root, b"nested/a.log")
    write(root, b"nested/kept")
    os.symlink(b".", os.path.join(root, b"loop"))
    os.symlink(b"nowhere", os.path.join(root, b"dead"))
    os.symlink(b"plain.txt", os.path.join(root, b"link"))
    os.mkfifo(os.path.join(root, b"fifo"))
    for number in range(300):
        write(root, b"many/d%02d/f%03d.rs" % (number % 17, number), b"fn f() {}\n// hay\n" if number % 3 else b"needle\n")


def in_order(path):
    return path.split(b"/")


def decoded(data):
    return data["text"].encode() if "text" in data else base64.b64decode(data["bytes"])


def shown(line):
    line = line.decode("utf-8", "replace").rstrip("\r\n")
    units = line.encode("utf-16-le", "surrogatepass")
    return line if len(units) <= 1000 else units[:1000].decode("utf-16-le", "ignore") + "... [truncated]"


def ripgrep(arguments, folder):
    command = ["rg", "--no-config", "--json", "--line-number", "--color=never", "--hidden"]
    # With several threads it depends on what else a thread has read whether a file is text.
    command += ["--threads", "1", "--sort", "path"]
    for flag, key in [("--ignore-case", "ignoreCase"), ("--fixed-strings", "literal")]:
        command += [flag] if arguments.get(key) else []
    command += ["--glob", arguments["glob"]] if "glob" in arguments else []
    command += ["--context", str(arguments["context"])] if arguments.get("context") else []
    target = arguments.get("path", ".")
    done = subprocess.run(command + ["--", arguments["pattern"], target], cwd=folder, capture_output=True, timeout=60)
    found = {}
    for record in map(json.loads, done.stdout.splitlines()):
        if record["type"] in ("match", "context"):
            data = record["data"]
            path = decoded(data["path"]).removeprefix(b"./")
            mark = ":" if record["type"] == "match" else "-"
            text = f"{path.decode('utf-8', 'replace')}{mark}{data['line_number']}{mark} {shown(decoded(data['lines']))}"
            found.setdefault(path, []).append(text)
    return [line for path in sorted(found, key=in_order) for line in found[path]]


def fd(arguments, folder):
    pattern = arguments["pattern"]
    command = ["fdfind", "--glob", "--hidden", "--color=never", "--print0"]
    if "/" in pattern:
        command.append("--full-path")
        if not pattern.startswith(("/", "**/")) and pattern != "**":
            pattern = "**/" + pattern
    done = subprocess.run(command + ["--", pattern], cwd=folder, capture_output=True, timeout=60)
    paths = [path.removeprefix(b"./") for path in done.stdout.split(b"\0") if path]
    folders = {path.rstrip(b"/") for path in paths if path.endswith(b"/")}
    paths = sorted((path.rstrip(b"/") for path in paths), key=in_order)
    return [path.decode("utf-8", "replace") + ("/" if path in folders else "") for path in paths]


def ours(tool, arguments, folder):
    arguments = {"limit": 100_000, **arguments}
    done = subprocess.run([SEARCH, tool, json.dumps(arguments), folder], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode().removesuffix("\n").split("\n\n[")[0]
    assert "limit reached" not in done.stdout.decode(), "the test wants too much at once"
    return [] if text in ("No matches found", "No files found matching pattern") else text.split("\n")


def compare(tool, theirs, arguments, folder):
    expected, found = theirs(arguments, folder), ours(tool, arguments, folder)
    assert expected or arguments.get("nothing"), f"{tool} {arguments}: nothing is expected, so nothing is tested"
    if expected != found:
        print(f"{tool} {arguments}", file=sys.stderr)
        for line in itertools.chain(
            (f"- {line}" for line in expected if line not in found), (f"+ {line}" for line in found if line not in expected)
        ):
            print(line[:300].encode("utf-8", "replace").decode(), file=sys.stderr)
        sys.exit("they differ" if set(expected) != set(found) else "the order differs")


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        tree(root)
        grep = [
            {"pattern": "needle"},
            {"pattern": "needle", "ignoreCase": True},
            {"pattern": "^needle$"},
            {"pattern": "n.{2}dle", "context": 1},
            {"pattern": "needle", "context": 3, "glob": "!many/**"},
            {"pattern": "fn f()", "literal": True, "glob": "many/d0[1-3]/*.rs"},
            {"pattern": "(?i)NEEDLE (two|four)"},
            {"pattern": "needle", "glob": "*.{txt,log}"},
            {"pattern": "needle", "glob": "sub/**"},
            {"pattern": "needle", "path": "sub"},
            {"pattern": r"\bneedle\b", "glob": "!*.rs"},
            {"pattern": "caf", "path": "latin"},
            {"pattern": "needle", "path": "ignored"},
            {"pattern": "needle", "path": "crlf.txt", "context": 1},
            {"pattern": r"\p{Lu}eedle"},
            {"pattern": "--pre=x", "nothing": True},
        ]
        for arguments in grep:
            arguments_of_tool = {key: value for key, value in arguments.items() if key != "nothing"}
            if arguments.get("path") == "sub":
                # ripgrep is run in the folder, as paths are relative to it.
                inner = {key: value for key, value in arguments_of_tool.items() if key != "path"}
                compare("grep", lambda given, where: ripgrep(inner, os.path.join(where, b"sub")), arguments_of_tool, root)
            else:
                compare("grep", ripgrep, {**arguments_of_tool, **({"nothing": True} if "nothing" in arguments else {})}, root)
        find = ["*", "*.rs", "f*.rs", "d0?", "plain.*", "Plain.*", "{empty,latin}", "many/**/f00[1-5].rs", "sub/*", "**/kept", "nested/**"]
        for pattern in find:
            compare("find", fd, {"pattern": pattern, **({"nothing": True} if pattern == "Plain.*" else {})}, root)
    print(f"{len(grep)} searches and {len(find)} globs: the same as ripgrep and fd")


main()
