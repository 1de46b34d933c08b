"""Compares every file of a wheel with its line in RECORD, and looks at its mode."""

import base64
import csv
import hashlib
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    assert wheel.testzip() is None
    entries = {entry.filename: entry for entry in wheel.infolist()}
    (record,) = [name for name in entries if name.endswith(".dist-info/RECORD")]
    rows = {row[0]: row[1:] for row in csv.reader(wheel.read(record).decode().splitlines())}
    assert rows.keys() == entries.keys(), rows.keys() ^ entries.keys()
    for name, (digest, size) in rows.items():
        content = wheel.read(name)
        if name == record:
            assert (digest, size) == ("", "")
            continue
        expected = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        assert (digest, size) == (f"sha256={expected}", str(len(content))), name
        mode = 0o100755 if "/scripts/" in name else 0o100644
        assert entries[name].external_attr >> 16 == mode, name
    programs = [name for name in entries if "/scripts/" in name]
    assert len(programs) == 3, programs
