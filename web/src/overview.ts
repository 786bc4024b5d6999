// The overview's small timeline with the findings on it, and the compact form of the overview that stays in sight.

import { all, make } from "./dom.js";
import { parse } from "./hash.js";
import type { Timeline } from "./timeline/timeline.js";

/** A finding's place on the small timeline, as parts of the recording. */
export interface Pin {
  finding: string;
  label: string;
  hash: string;
  title: string;
  from: number;
  to: number;
  /** In which line it stands, so that none lies over another. */
  line: number;
}

/** How wide a pin is, as a part of the timeline, and how many lines there are at most. */
const PIN_PART = 0.022;
const LINES = 4;

/** Where findings are: links to all of the recording say no place. `length` and `begin` are the recording's. */
export function pins(links: readonly { finding: string; label: string; title: string; hash: string }[], begin: bigint, length: number, recording: number): Pin[] {
  const free: number[] = [];
  const out: Pin[] = [];
  const seen = new Set<string>();
  for (const { finding, label, title, hash } of links) {
    const place = parse(hash);
    if (!place || place.recording !== recording) continue;
    const part = (time: bigint): number => Math.min(1, Math.max(0, Number(time - begin) / length));
    const [from, to] = [part(place.from), part(place.to)];
    const key = `${finding} ${from.toFixed(3)}`;
    if (to - from > 0.99 || seen.has(key)) continue;
    seen.add(key);
    out.push({ finding, label, title, hash, from, to, line: 0 });
  }
  out.sort((a, b) => a.from - b.from);
  for (const pin of out) {
    const found = free.findIndex((end) => end <= pin.from);
    pin.line = found >= 0 ? found : Math.min(free.length, LINES - 1);
    free[pin.line] = pin.from + PIN_PART;
  }
  return out;
}

/** Links of findings to times. */
function linksOf(): { finding: string; label: string; title: string; hash: string }[] {
  return all(".finding").flatMap((finding, at) => {
    const title = (finding.querySelector("h3, h4")?.textContent ?? "").trim();
    const label = /^(\d+)\. /.exec(title)?.[1] ?? String(at + 1);
    const links = all<HTMLAnchorElement>("a[href^='#t=']", finding);
    return links.map((link) => ({ finding: finding.id, label, title, hash: link.getAttribute("href") ?? "" }));
  });
}

function small(timeline: Timeline, isCompact: boolean): HTMLElement {
  const canvas = make("canvas", { class: "small-strip", "aria-hidden": "true" });
  canvas.addEventListener("click", (event) => timeline.showAround(event.offsetX / Math.max(1, canvas.clientWidth)));
  timeline.alsoOn(canvas);
  const found = pins(linksOf(), timeline.data.begin, timeline.data.length, timeline.recording);
  const lines = found.reduce((most, pin) => Math.max(most, pin.line + 1), 0);
  const place = make("div", { class: "pins" });
  place.style.height = `${isCompact ? 0 : lines * 1.25}rem`;
  for (const pin of found) {
    const link = make("a", { href: pin.hash, class: "pin", "data-finding": pin.finding, title: pin.title, "aria-label": `Finding ${pin.title}: show on timeline` }, pin.label);
    link.style.left = `${pin.from * 100}%`;
    link.style.top = `${pin.line * 1.25}rem`;
    const span = make("span", { class: "pin-span", "data-finding": pin.finding });
    span.style.left = `${pin.from * 100}%`;
    span.style.width = `${Math.max(0, pin.to - pin.from) * 100}%`;
    if (isCompact) place.append(span);
    else place.append(link, span);
  }
  return make("div", { class: "small-timeline" }, place, canvas);
}

/** Puts small timelines into the overview, and its compact form into the page's head. */
export function start(timelines: readonly Timeline[]): void {
  const overview = document.getElementById("overview");
  const header = document.querySelector("body > header");
  if (!overview) return;
  const lists = all("ol.first-findings", overview);
  timelines.forEach((timeline, at) => {
    const text = timelines.length > 1 ? `All of recording ${at + 1}, with the findings by their numbers` : "All of the recording, with the findings by their numbers";
    const figure = make("figure", { class: "overview-timeline" }, make("figcaption", {}, text), small(timeline, false));
    const list = lists[at] ?? all(".headline", overview)[at];
    if (list) list.after(figure);
    else overview.append(figure);
  });
  const first = overview.querySelector(".first-findings li") ?? overview.querySelector(".headline");
  if (!header || !first) return;
  const says = make("span", { class: "compact-text" }, ...[...first.childNodes].map((node) => node.cloneNode(true)));
  const more = all(".first-findings li", overview).length - 1;
  if (more > 0) says.append(` and ${more} more`);
  const bar = make("div", { class: "compact", "aria-hidden": "true", inert: "" }, says);
  const [timeline] = timelines;
  if (timeline) bar.append(small(timeline, true));
  header.append(bar);
  // It is there only while the overview itself is out of sight.
  new IntersectionObserver(([entry]) => {
    if (!entry) return;
    const isPast = !entry.isIntersecting && entry.boundingClientRect.top < 0;
    document.documentElement.classList.toggle("past-overview", isPast);
    bar.toggleAttribute("inert", !isPast);
    bar.setAttribute("aria-hidden", String(!isPast));
  }).observe(overview);
}
