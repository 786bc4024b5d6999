// A search over everything: rows of tables, findings, sentences, and what timelines hold.

import { byTable } from "./columns.js";
import { say } from "./copy.js";
import { all, button, isTyping, make, settled, unfold } from "./dom.js";
import type { Timeline } from "./timeline/timeline.js";
import type { Found } from "./timeline/find.js";

/** A hit: an element of the page, or a place of a timeline. */
type Hit = { element: Element } | { timeline: Timeline; found: Found };

/** What is searched: the smallest of these around a text. */
const PLACES = "tbody tr, p, li, h3, h4, dt, dd, figcaption, caption, summary:not(:has(h3, h4)), pre, svg text, .finding";
/** Hits that are marked and can be gone through; more are counted. */
const MOST = 5000;

/** The names of highlights (CSS Custom Highlight API), where the browser has them. */
interface Highlights {
  set(name: string, highlight: unknown): void;
  delete(name: string): void;
}

/** Marks the letters that were found, without touching the page. */
function highlight(elements: readonly Element[], wanted: string): void {
  const registry = (CSS as unknown as { highlights?: Highlights }).highlights;
  const make = (window as unknown as { Highlight?: new (...ranges: Range[]) => unknown }).Highlight;
  if (!registry || !make) return;
  registry.delete("found");
  if (wanted === "") return;
  const ranges: Range[] = [];
  for (const element of elements.slice(0, 1000)) {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const text = (node.nodeValue ?? "").toLowerCase();
      for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
        if (at + wanted.length > (node.nodeValue ?? "").length) break;
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + wanted.length);
        ranges.push(range);
      }
    }
  }
  registry.set("found", new make(...ranges));
}

/** Texts of the page that can be found; those that a script makes anew are left out. */
function texts(): { element: Element; text: string }[] {
  const found = all<Element>(`section :is(${PLACES})`);
  const inner = found.filter((element) => !element.closest(".timeline, svg.flame, .table-tools, .uplot") && !element.querySelector(PLACES));
  return inner.map((element) => ({ element, text: (element.textContent ?? "").replace(/\s+/g, " ").toLowerCase() }));
}

/** Puts the search into the page's head. */
export function start(timelines: readonly Timeline[]): void {
  const host = document.getElementById("search");
  if (!host) return;
  const input = make("input", { type: "search", placeholder: "Search  ( / )", "aria-label": "Search this report", autocomplete: "off", spellcheck: "false" });
  const count = make("span", { class: "found", "aria-hidden": "true" });
  const before = button("↑", () => go(-1), { class: "small", "aria-label": "Previous hit", title: "Previous hit (Shift+Enter)" });
  const after = button("↓", () => go(1), { class: "small", "aria-label": "Next hit", title: "Next hit (Enter)" });
  host.setAttribute("role", "search");
  host.append(input, before, after, count);

  let known: { element: Element; text: string }[] | undefined;
  let hits: Hit[] = [];
  let at = -1;
  let searched = "";

  const clear = (): void => {
    for (const hit of hits) if ("element" in hit) hit.element.classList.remove("hit", "hit-now");
    hits = [];
    at = -1;
  };
  const show = (): void => {
    const now = at >= 0 ? `${at + 1} of ` : "";
    count.textContent = searched === "" ? "" : hits.length === 0 ? "nothing found" : `${now}${hits.length} hit${hits.length === 1 ? "" : "s"}`;
    before.disabled = after.disabled = hits.length === 0;
  };
  const search = (): void => {
    const wanted = input.value.trim().replace(/\s+/g, " ").toLowerCase();
    if (wanted === searched) return;
    clear();
    searched = wanted;
    if (wanted !== "") {
      known ??= texts();
      // What is of another VM than the one that is shown alone is not there.
      const elements = known.filter(({ element, text }) => text.includes(wanted) && !element.closest("[hidden]")).map(({ element }) => element);
      for (const element of elements.slice(0, MOST)) element.classList.add("hit");
      hits = elements.map((element): Hit => ({ element }));
      for (const timeline of timelines) hits.push(...timeline.find(wanted).map((found): Hit => ({ timeline, found })));
      // In the order of the page.
      const place = (hit: Hit): Element => ("element" in hit ? hit.element : hit.timeline.host);
      hits.sort((a, b) => {
        const [x, y] = [place(a), place(b)];
        return x === y ? 0 : x.compareDocumentPosition(y) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1;
      });
      highlight(elements, wanted);
      say(hits.length === 1 ? "1 hit" : `${hits.length} hits`);
    } else highlight([], "");
    show();
  };
  const go = (by: number): void => {
    search();
    if (hits.length === 0) return;
    const last = hits[at];
    if (last && "element" in last) last.element.classList.remove("hit-now");
    at = at < 0 ? (by > 0 ? 0 : hits.length - 1) : (at + by + hits.length) % hits.length;
    const hit = hits[at] as Hit;
    if ("element" in hit) {
      unfold(hit.element);
      const table = hit.element.closest("table");
      if (table && hit.element instanceof HTMLTableRowElement) byTable.get(table)?.reveal(hit.element, searched);
      hit.element.classList.add("hit-now");
      hit.element.scrollIntoView({ block: "center", inline: "nearest" });
      say(`${at + 1} of ${hits.length}: ${(hit.element.textContent ?? "").replace(/\s+/g, " ").slice(0, 200)}`);
    } else {
      unfold(hit.timeline.host);
      hit.timeline.show(hit.found);
    }
    show();
  };
  const later = settled(search, 120);
  input.addEventListener("input", later);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") {
      input.value = "";
      search();
      input.blur();
    } else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  show();
}
