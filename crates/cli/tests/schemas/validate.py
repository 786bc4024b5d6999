#!/usr/bin/env python3
"""Validates documents against the schemas of their commands: validate.py SCHEMAS DOCUMENTS (two folders)."""

import json
import sys
from pathlib import Path

from jsonschema_rs import Draft202012Validator


def main() -> int:
    schemas = {}
    for file in Path(sys.argv[1]).glob("*.json"):
        schema = json.loads(file.read_text())
        # It fails where the schema is none.
        schemas[file.stem] = Draft202012Validator(schema)
    count = 0
    for file in sorted(Path(sys.argv[2]).rglob("*.json")):
        document = json.loads(file.read_text())
        for error in schemas[document["command"]].iter_errors(document):
            where = "/".join(map(str, error.instance_path))
            sys.stderr.write(f"{document['command']} of {document['inputs']}: {where}: {error.message[:400]}\n")
            return 1
        count += 1
    print(f"{count} documents are valid")
    return 0


if __name__ == "__main__":
    sys.exit(main())
