// Tables as CSV (RFC 4180) and as text, with what crates/render/src/csv.rs and neutral.rs do: nothing is run by
// spreadsheets, and nothing steers a terminal.

/** Control characters, marks and overrides of direction (UAX #9), and Unicode's separators of lines and paragraphs. */
const STEERS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function shown(character: string): string {
  const code = character.charCodeAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}

/** A name without what steers what shows it. */
export function neutral(text: string): string {
  return text.replace(STEERS, shown);
}

/** What Rust's `f64` reads. */
const NUMBER = /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf|infinity|nan)$/i;

/** A cell that no spreadsheet runs. */
export function cell(text: string): string {
  const runs = text.length > 1 && /^[=+\-@\t\r]/.test(text) && !NUMBER.test(text);
  const safe = text.replace(STEERS, (character) => (character === "\n" ? character : shown(character)));
  return runs ? `'${safe}` : safe;
}

/** Rows as CSV. */
export function csv(rows: readonly (readonly string[])[]): string {
  const field = (text: string): string => {
    const safe = cell(text);
    return /[,"\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => row.map(field).join(",") + "\n").join("");
}

/** Rows in columns that line up; those that hold numbers at the right. */
export function aligned(rows: readonly (readonly string[])[], right: readonly boolean[]): string {
  const clean = rows.map((row) => row.map((text) => neutral(text.replace(/\s+/g, " ").trim())));
  const widths: number[] = [];
  for (const row of clean) row.forEach((text, at) => (widths[at] = Math.max(widths[at] ?? 0, [...text].length)));
  const line = (row: string[]): string => {
    const cells = row.map((text, at) => {
      const pad = " ".repeat((widths[at] ?? 0) - [...text].length);
      return right[at] ? pad + text : text + pad;
    });
    return cells.join("  ").trimEnd();
  };
  return clean.map((row) => line(row) + "\n").join("");
}
