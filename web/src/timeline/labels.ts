// How wide texts are: in cells, and of the names of lanes. Asking a canvas for every label of every frame would take longer than all
// else.

import { make } from "../dom.js";
import type { Data } from "./data.js";
import type { Row } from "./rows.js";
import { isScatter } from "./scatter.js";

/** Widths of letters in one font. */
export class Letters {
  private readonly widths = new Map<string, number>();

  constructor(private readonly context: CanvasRenderingContext2D) {}

  private letter(letter: string): number {
    let width = this.widths.get(letter);
    if (width === undefined) {
      if (this.widths.size > 5000) this.widths.clear();
      width = this.context.measureText(letter).width;
      this.widths.set(letter, width);
    }
    return width;
  }

  /** The width of a text, a little more where letters are set closer. */
  width(text: string): number {
    let sum = 0;
    for (const letter of text) sum += this.letter(letter);
    return sum;
  }

  /** As much of a text as fits; nothing where that would be less than three letters of a longer one. */
  fit(text: string, room: number): string {
    const dots = this.letter("…");
    let sum = 0;
    let at = 0;
    // Up to where letters and dots fit.
    let cut = 0;
    for (const letter of text) {
      sum += this.letter(letter);
      if (sum > room) return cut > 2 ? `${text.slice(0, cut)}…` : "";
      at += letter.length;
      if (sum + dots <= room) cut = at;
    }
    return text;
  }
}

/** Makes the name of a row, which does something when it is pressed. */
export function makeLabel(data: Data, row: Row, isFolded: boolean, isMarked: boolean, press: () => void): HTMLElement {
  const attributes: Record<string, string> =
    row.type === "group"
      ? { "aria-expanded": String(!isFolded), "data-group": row.fold }
      : { tabindex: "-1", title: [row.label, row.detail].filter(Boolean).join(": ") };
  const made = make("button", { type: "button", class: `tl-row ${row.type}`, ...attributes }, make("span", { class: "name" }, row.label));
  if (row.detail) made.append(" ", make("span", { class: "soft" }, row.detail));
  made.classList.toggle("scatter", row.type === "marks" && isScatter(data.marks[row.index]));
  made.classList.toggle("marked", isMarked);
  if (row.type === "lane") made.dataset["lane"] = data.lanes[row.index]?.id ?? "";
  made.addEventListener("click", press);
  return made;
}

/** The names' column is at least so wide, and at most so much of the timeline. */
const NARROWEST_PX = 120;
const WIDEST = 0.45;

/** How wide the column of names becomes: as wide as the widest name, or with its details where these fit too. */
export function columnWidth(names: readonly number[], whole: readonly number[], room: number): number {
  const most = Math.max(NARROWEST_PX, room * WIDEST);
  const fits = whole.filter((width) => width <= room * 0.28);
  const wanted = Math.max(NARROWEST_PX, ...names, ...fits);
  return Math.ceil(Math.min(wanted, most));
}

/** Gives the column of names its width; returns the heights of rows whose names need several lines. */
export function fitLabels(host: HTMLElement, labels: HTMLElement): Map<number, number> {
  const heights = new Map<number, number>();
  const room = host.clientWidth;
  if (room <= 0) return heights;
  const rows = [...labels.children] as HTMLElement[];
  for (const row of rows) row.classList.remove("short", "long");
  // First all is measured, then all is changed: each change before a measure would lay the page out again.
  const measured = rows.map((row) => {
    const [name, detail] = [...row.children] as HTMLElement[];
    const style = row.classList.contains("group") ? 34 : 30;
    const isBelow = row.classList.contains("scatter");
    const [own, beside] = [(name?.offsetWidth ?? 0) + style, detail?.offsetWidth ?? 0];
    return { name: isBelow ? Math.max(own, beside + style) : own, whole: isBelow || beside === 0 ? own : own + beside + 4 };
  });
  const column = columnWidth(measured.map(({ name }) => name), measured.map(({ whole }) => whole), room);
  host.style.setProperty("--label-width", `${column}px`);
  const long = rows.filter((row, at) => {
    const { name, whole } = measured[at] ?? { name: 0, whole: 0 };
    row.classList.toggle("short", whole > column);
    row.classList.toggle("long", name > column);
    return name > column;
  });
  for (const row of long) heights.set(rows.indexOf(row), row.offsetHeight);
  return heights;
}
