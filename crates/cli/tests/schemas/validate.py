#!/usr/bin/env python3
"""Validates documents against the schemas of their commands: validate.py SCHEMAS DOCUMENTS (two folders)."""

import json
import sys
from pathlib import Path

from jsonschema import Draft202012Validator


def main() -> int:
    schemas = {}
    for file in Path(sys.argv[1]).glob("*.json"):
        schema = json.loads(file.read_text())
        Draft202012Validator.check_schema(schema)
        schemas[file.stem] = Draft202012Validator(schema)
    count = 0
    for file in sorted(Path(sys.argv[2]).rglob("*.json")):
        document = json.loads(file.read_text())
        for error in schemas[document["command"]].iter_errors(document):
            sys.stderr.write(f"{document['command']} of {document['inputs']}: {error.json_path}: {error.message[:400]}\n")
            return 1
        count += 1
    print(f"{count} documents are valid")
    return 0


if __name__ == "__main__":
    sys.exit(main())
