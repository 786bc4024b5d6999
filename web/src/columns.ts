// Columns of wide tables: those beyond the first are hidden until somebody wants them, but none that has a finding's number.

import { all, button, make } from "./dom.js";

/** So many columns show at first; fewer where these do not fit, down to `LEAST`. Tables that have more than that have a chooser. */
export const MOST = 10;
export const LEAST = 6;

/** Times with so many digits are no chance hit: they are a finding's if a finding has the same. */
const EXACT = /^\d+\.\d+(?:ns|us|ms|s)$/;
const NUMBERS = /\d+(?:\.\d+)?(?:ns\b|us\b|ms\b|s\b| %)?/g;

/** Numbers as a text has them: `84.59ms`, `2.3 %`, `7681`. */
export function numbers(text: string): Set<string> {
  return new Set([...text.replace(/\s+/g, " ").matchAll(NUMBERS)].map((found) => found[0]));
}

/**
 * Columns that have numbers of findings. In rows that a finding links to each number that it says counts, in others only times
 * that are exact enough to be no chance.
 */
export function ofFindings(rows: readonly { cells: readonly string[]; isLinked: boolean }[], said: ReadonlySet<string>): Set<number> {
  const found = new Set<number>();
  for (const { cells, isLinked } of rows) {
    cells.forEach((text, column) => {
      if (said.has(text) && (isLinked || EXACT.test(text))) found.add(column);
    });
  }
  return found;
}

/** Which of `count` columns show at first: the first `most`, and those that are kept. */
export function first(count: number, most: number, kept: ReadonlySet<number>): boolean[] {
  return Array.from({ length: count }, (_, column) => column < most || kept.has(column));
}

/** The room of a table, and how wide it and each of its columns are while the first `MOST` show. */
export interface Widths {
  room: number;
  table: number;
  columns: readonly number[];
}

/** How many of the first columns fit, of `MOST` at most and `LEAST` at least. Those that are kept take room in any case. */
export function fitting(widths: Widths, kept: ReadonlySet<number>): number {
  let [most, width] = [Math.min(MOST, widths.columns.length), widths.table];
  // A browser rounds the parts of a table that together are as wide as its room.
  while (most > LEAST && width > widths.room + 0.5) {
    most--;
    if (!kept.has(most)) width -= widths.columns[most] ?? 0;
  }
  return most;
}

/** How often tables were measured, for tests: once for each that got another room. */
export const measured = { times: 0 };

/** The columns of each box, by which they learn of another room. */
const byBox = new WeakMap<Element, Columns>();

/** Tables that have another room are measured together: what each would write lays the page out again for the next. */
function fitAll(entries: readonly ResizeObserverEntry[]): void {
  const changed = entries.flatMap((entry) => byBox.get(entry.target) ?? []).filter((one) => one.hasAnotherRoom());
  for (const one of changed) one.widen();
  const widths = changed.map((one) => one.measure());
  changed.forEach((one, at) => one.narrow(widths[at] as Widths));
}

/** What hears of all rooms, made with the first table. */
let rooms: ResizeObserver | undefined;

function text(element: Element | undefined): string {
  return (element?.textContent ?? "").replace(/\s+/g, " ").trim();
}

/** What findings say, read once: they do not change. */
let said: { numbers: Set<string>; rows: Set<string> } | undefined;

function findings(): { numbers: Set<string>; rows: Set<string> } {
  if (said) return said;
  const places = all(".finding, .headline, .first-findings");
  const links = all<HTMLAnchorElement>('.finding a[href^="#row-"]').map((link) => (link.getAttribute("href") ?? "").slice(1));
  said = { numbers: numbers(places.map((one) => text(one)).join(" ")), rows: new Set(links) };
  return said;
}

/** The columns of one table. */
export class Columns {
  private shown: boolean[];
  private readonly kept: Set<number>;
  private isChosen = false;
  private isPrinting = false;
  /** The room that the columns were fitted to. */
  private room = NaN;
  private readonly chooser: HTMLDetailsElement;
  private readonly summary = make("summary");
  private readonly boxes: HTMLInputElement[];

  constructor(
    private readonly table: HTMLTableElement,
    private readonly heads: readonly HTMLTableCellElement[],
    private readonly box: HTMLElement,
    tools: HTMLElement,
  ) {
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
    const { numbers, rows: linked } = findings();
    this.kept = ofFindings(rows.map((row) => ({ cells: [...row.cells].map(text), isLinked: linked.has(row.id) })), numbers);
    this.shown = first(heads.length, MOST, this.kept);
    this.boxes = heads.map((_, column) => {
      const box = make("input", { type: "checkbox" });
      box.addEventListener("change", () => this.choose(this.shown.map((shown, at) => (at === column ? box.checked : shown))));
      return box;
    });
    const list = make("div", { class: "column-list" }, ...this.boxes.map((box, column) => make("label", {}, box, " ", text(heads[column]))));
    list.append(
      button("All", () => this.choose(this.shown.map(() => true)), { class: "small" }),
      button("First ones", () => this.choose(first(heads.length, MOST, this.kept)), { class: "small" }),
    );
    this.chooser = make("details", { class: "columns-chooser" }, this.summary, list);
    tools.append(this.chooser);
    this.apply();
    new MutationObserver(() => this.apply()).observe(table, { childList: true });
    byBox.set(box, this);
    (rooms ??= new ResizeObserver(fitAll)).observe(box);
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
  }

  /** Shows the column that a text is in, where it is hidden. */
  reveal(row: HTMLTableRowElement, wanted: string): void {
    const at = [...row.cells].findIndex((cell) => text(cell).toLowerCase().includes(wanted));
    if (at >= 0 && !this.shown[at]) this.choose(this.shown.map((shown, column) => shown || column === at));
  }

  private choose(shown: boolean[]): void {
    this.isChosen = true;
    this.shown = shown;
    this.apply();
  }

  private roomNow(): number {
    return (this.box.parentElement ?? this.box).clientWidth;
  }

  /** Whether there is another room than before, and nobody has chosen what is in it. */
  hasAnotherRoom(): boolean {
    return !this.isChosen && !this.isPrinting && this.box.clientWidth > 0 && this.roomNow() !== this.room;
  }

  /** Shows as many columns as may fit, to be measured. */
  widen(): void {
    this.shown = first(this.heads.length, MOST, this.kept);
    this.apply();
  }

  /** Reads how wide all is. */
  measure(): Widths {
    measured.times++;
    this.room = this.roomNow();
    const width = (element: Element): number => element.getBoundingClientRect().width;
    return { room: this.room, table: width(this.table), columns: this.heads.map(width) };
  }

  /** Hides columns from the last one on as long as the table is wider than its room. */
  narrow(widths: Widths): void {
    this.shown = first(this.heads.length, fitting(widths, this.kept), this.kept);
    this.apply();
  }

  /** On paper nobody can choose. */
  private print(isPrinting: boolean): void {
    this.isPrinting = isPrinting;
    this.apply();
  }

  private apply(): void {
    const { table, isPrinting } = this;
    const shown = isPrinting ? this.shown.map(() => true) : this.shown;
    for (const row of table.rows) {
      [...row.cells].forEach((cell, column) => {
        if (cell.hidden === shown[column]) cell.hidden = !shown[column];
      });
    }
    this.boxes.forEach((box, column) => (box.checked = shown[column] ?? true));
    // A table that shows as a whole needs no choice.
    this.chooser.hidden = !this.isChosen && shown.every(Boolean);
    this.summary.textContent = `Columns: ${shown.filter(Boolean).length} of ${shown.length}`;
  }
}

/** The columns of each table that has a chooser. */
export const byTable = new WeakMap<HTMLTableElement, Columns>();

/** Gives a table a chooser if it has many columns. */
export function equip(table: HTMLTableElement, heads: readonly HTMLTableCellElement[], box: HTMLElement, tools: HTMLElement): void {
  if (heads.length > LEAST && heads.every((head) => head.colSpan === 1)) byTable.set(table, new Columns(table, heads, box, tools));
}
