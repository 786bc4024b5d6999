"""The statements that the screen of 'trapline fleet' is made of, from screen.sql."""

import re
from pathlib import Path

SQL = Path(__file__).resolve().parent / "screen.sql"
# The file by which a folder with their answers is known from a store (crates/store/src/screen_folder.rs).
MARK = "fleet-screen.json"


def statements(days):
    """The statements about some days, by table, in their order."""
    parts = re.split(r"^-- Table (\w+):.*$", SQL.read_text(encoding="utf-8"), flags=re.MULTILINE)
    texts = ", ".join(f"'{day}'" for day in days)
    return {name: sql.strip().rstrip(";").replace(":days", texts) for name, sql in zip(parts[1::2], parts[2::2])}


def is_day(text):
    """Whether a text is a day, as names of a store's folders have it."""
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None
