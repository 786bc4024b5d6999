// Tables: sorted by their columns, copied as text, as CSV, or as the command that prints them.

import * as columns from "./columns.js";
import { copier } from "./copy.js";
import { aligned, csv } from "./csv.js";
import { all, make } from "./dom.js";

/** Letters with digits in them, such as `CPU 10`, in the order of their numbers. */
const BY_NAME = new Intl.Collator("en", { numeric: true });

/** The exact value of a cell, or its text. */
export function value(cell: Element | undefined): string {
  if (!cell) return "";
  return cell.getAttribute("data-v") ?? shown(cell);
}

function shown(cell: Element | undefined): string {
  return (cell?.textContent ?? "").replace(/\s+/g, " ").trim();
}

/** Which of two values is first, the smaller one. Cells without a number are last, whichever way is asked for. */
export function order(a: string, b: string, isNumber: boolean, sign: number): number {
  if (!isNumber) return a === b ? 0 : a === "" ? 1 : b === "" ? -1 : sign * BY_NAME.compare(a, b);
  const [x, y] = [a === "" ? NaN : Number(a), b === "" ? NaN : Number(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
  if (x !== y) return sign * (x < y ? -1 : 1);
  // Counts of nanoseconds since a boot of long ago differ beyond what a double holds.
  if (a === b || !/^-?\d+$/.test(a) || !/^-?\d+$/.test(b)) return 0;
  return BigInt(a) === BigInt(b) ? 0 : sign * (BigInt(a) < BigInt(b) ? -1 : 1);
}

function rowsOf(table: HTMLTableElement): HTMLTableRowElement[] {
  return [...table.tBodies].flatMap((body) => [...body.rows]);
}

function isNumberColumn(table: HTMLTableElement, column: number): boolean {
  const unit = headsOf(table)[column]?.getAttribute("data-unit");
  if (unit) return unit !== "text" && unit !== "address";
  return rowsOf(table).some((row) => row.cells[column]?.hasAttribute("data-v"));
}

function headsOf(table: HTMLTableElement): HTMLTableCellElement[] {
  const row = table.tHead?.rows[table.tHead.rows.length - 1];
  return row ? [...row.cells] : [];
}

function sort(table: HTMLTableElement, column: number, isNumber: boolean, sign: number): void {
  for (const body of table.tBodies) {
    const keyed = [...body.rows].map((row) => ({ row, key: value(row.cells[column]) }));
    keyed.sort((a, b) => order(a.key, b.key, isNumber, sign));
    body.append(...keyed.map(({ row }) => row));
  }
}

/** Makes the heads of a table buttons that sort it. */
function sortable(table: HTMLTableElement): void {
  if (rowsOf(table).length < 2 || rowsOf(table).some((row) => [...row.cells].some((cell) => cell.colSpan > 1))) return;
  const heads = headsOf(table);
  heads.forEach((head, column) => {
    if (head.colSpan > 1) return;
    const isNumber = isNumberColumn(table, column);
    const press = (): void => {
      const now = head.getAttribute("aria-sort");
      // The greatest numbers first, since they are looked for; names from A.
      const first = isNumber ? "descending" : "ascending";
      const other = isNumber ? "ascending" : "descending";
      const next = now === first ? other : first;
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", next);
      sort(table, column, isNumber, next === "ascending" ? 1 : -1);
    };
    const name = make("span", {}, ...head.childNodes);
    const sorter = make("button", { type: "button", class: "sort" }, name);
    sorter.addEventListener("click", press);
    head.replaceChildren(sorter);
  });
}

function headName(head: HTMLTableCellElement): string {
  return shown(head);
}

/** Those that show: rows of other VMs and columns that nobody asked for do not. */
function seen<E extends HTMLElement>(elements: readonly E[]): E[] {
  return elements.filter((one) => !one.hidden);
}

/** A table as CSV, with all its columns: exact values below the names of columns that `--format csv` has. */
export function asCsv(table: HTMLTableElement): string {
  const heads = headsOf(table).map((head) => head.getAttribute("data-column") ?? headName(head));
  const isNumber = heads.map((_, column) => isNumberColumn(table, column));
  // A column of numbers has a dash where there is none: that is for readers.
  const exact = (cell: Element, column: number): string => (isNumber[column] && !cell.hasAttribute("data-v") ? "" : value(cell));
  const rows = seen(rowsOf(table)).map((row) => [...row.cells].map(exact));
  return csv([heads, ...rows]);
}

/** A table as text, as it shows. */
export function asText(table: HTMLTableElement): string {
  const heads = headsOf(table);
  const right = heads.flatMap((head, column) => (head.hidden ? [] : [isNumberColumn(table, column)]));
  const rows = seen([...rowsOf(table), ...(table.tFoot?.rows ?? [])]).map((row) => seen([...row.cells]).map(shown));
  const caption = shown(table.caption ?? undefined);
  const command = table.getAttribute("data-command");
  const body = aligned([seen(heads).map(headName), ...rows], right);
  return (caption ? `${caption}\n\n` : "") + body + (command ? `\n$ ${command}\n` : "");
}

/** Gives a table its buttons. What was in the table when it was made does not matter: it is read when they are pressed. */
export function equip(table: HTMLTableElement): void {
  const name = shown(table.caption ?? undefined) || table.getAttribute("data-name") || "table";
  const label = (what: string): Record<string, string> => ({ class: "small", "aria-label": `${what}: ${name}` });
  const tools = make("div", { class: "table-tools", role: "group", "aria-label": `Copy: ${name}` });
  tools.append(copier("Copy as text", () => asText(table), label("Copy as text")));
  tools.append(copier("Copy as CSV", () => asCsv(table), label("Copy as CSV")));
  const command = table.getAttribute("data-command");
  if (command) {
    tools.append(copier("Copy command", () => table.getAttribute("data-command") ?? command, label("Copy command")));
  }
  // A table that is wider than the page scrolls by itself, by keyboard too.
  let box = table.parentElement;
  if (box?.classList.contains("scroll")) box.classList.add("table-box");
  if (!box?.classList.contains("table-box")) {
    box = make("div", { class: "table-box" });
    table.replaceWith(box);
    box.append(table);
  }
  box.setAttribute("tabindex", "0");
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", name);
  box.before(tools);
  sortable(table);
  columns.equip(table, headsOf(table), box, tools);
  const wider = make("span", { class: "wider", hidden: "" }, "scroll sideways for more columns →");
  tools.append(wider);
  watch(box, wider);
}

/** A box that may be narrower than its table, and what says so. */
interface Scrolled {
  box: HTMLElement;
  wider: HTMLElement;
}

/** The boxes that are watched. */
const scrolled = new WeakMap<Element, Scrolled>();

/** Shows where boxes have more at their right or left than fits: scroll bars of many systems hide until they are used. */
function look(boxes: readonly Scrolled[]): void {
  // All is read before anything is written: each by itself would lay the page out again.
  const read = boxes.map(({ box }) => ({ hidden: box.scrollWidth - box.clientWidth, left: box.scrollLeft }));
  read.forEach(({ hidden, left }, at) => {
    const { box, wider } = boxes[at] as Scrolled;
    wider.hidden = hidden <= 1;
    box.classList.toggle("more-right", hidden - left > 1);
    box.classList.toggle("more-left", left > 1);
  });
}

/** What hears of all their sizes, made with the first box. */
let sizes: ResizeObserver | undefined;

function watch(box: HTMLElement, wider: HTMLElement): void {
  const one = { box, wider };
  scrolled.set(box, one);
  box.addEventListener("scroll", () => look([one]), { passive: true });
  // It looks at first too, but at all tables together.
  sizes ??= new ResizeObserver((entries) => look(entries.flatMap((entry) => scrolled.get(entry.target) ?? [])));
  sizes.observe(box);
}

/** Gives every table of the page its buttons. */
export function start(): void {
  for (const table of all<HTMLTableElement>("table.data")) equip(table);
}

