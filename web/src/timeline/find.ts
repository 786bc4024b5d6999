// Finding a text in a timeline.

import { clock } from "./ticks.js";
import type { Data } from "./data.js";
import { mark as tellMark, name, sentence } from "./tell.js";

/** A place where a text is found. */
export interface Found {
  text: string;
  lane?: number;
  from?: number;
  to?: number;
  mark?: { line: number; index: number };
}

/** Places of each sort that are counted at most. */
const MOST = 1000;

/** The numbers of names that have a text, whatever its letters' case. */
function namesWith(data: Data, wanted: string): Set<number> {
  return new Set(data.names.flatMap((one, index) => (one.toLowerCase().includes(wanted) ? [index] : [])));
}

/** The longest stretch whose cause has a text; one of which the page has single events, where there is one. */
export function example(data: Data, text: string): Found | undefined {
  const matching = namesWith(data, text.toLowerCase());
  let best: Found | undefined;
  let most = [-1, -1];
  data.lanes.forEach(({ cells, label }, lane) => {
    for (let i = 0; matching.size > 0 && i < cells.count; i++) {
      if ((cells.kind[i] as number) < 0 || !matching.has(cells.a[i] as number)) continue;
      const [from, to] = [cells.begin[i] as number, cells.end[i] as number];
      const isShown = data.windows.some((window) => window.begin <= from && window.end >= to && window.count > 0);
      if (Number(isShown) < (most[0] ?? 0) || (Number(isShown) === most[0] && to - from <= (most[1] ?? 0))) continue;
      most = [Number(isShown), to - from];
      best = { text: `${label}: ${name(data, cells.a[i] as number)}, the longest${isShown ? " of which single events were kept" : ""}`, lane, from, to };
    }
  });
  return best;
}

/** Finds a text, whatever its letters' case, in names of lanes, causes of stretches (the longest of each lane), marks and events. */
export function find(data: Data, text: string): Found[] {
  const wanted = text.toLowerCase();
  const found: Found[] = [];
  if (wanted === "") return found;
  const matching = namesWith(data, wanted);
  data.lanes.forEach((lane, index) => {
    if (`${lane.label} ${lane.detail} ${lane.id}`.toLowerCase().includes(wanted)) found.push({ text: `${lane.label}: ${lane.detail}`, lane: index });
  });
  if (matching.size > 0) data.lanes.forEach((lane, index) => {
    const { cells } = lane;
    let best = -1;
    let longest = -1;
    let count = 0;
    for (let i = 0; i < cells.count; i++) {
      if ((cells.kind[i] as number) < 0 || !(matching.has(cells.a[i] as number) || matching.has(cells.b[i] as number))) continue;
      count++;
      const length = (cells.end[i] as number) - (cells.begin[i] as number);
      if (length > longest) [longest, best] = [length, i];
    }
    if (best < 0) return;
    const names = [cells.a[best] as number, cells.b[best] as number].filter((one) => matching.has(one)).map((one) => name(data, one));
    const more = count > 1 ? ` (the longest of ${count})` : "";
    found.push({ text: `${lane.label}: ${names.join(", ")}${more}`, lane: index, from: cells.begin[best] as number, to: cells.end[best] as number });
  });
  data.marks.forEach((marks, line) => {
    for (let index = 0; index < Math.min(marks.count, MOST); index++) {
      if (matching.has(marks.what[index] as number)) found.push({ text: sentence(tellMark(data, line, index)), mark: { line, index } });
    }
  });
  let events = 0;
  for (const window of data.windows) {
    for (let i = 0; i < window.count && events < MOST; i++) {
      if (!matching.has(window.name[i] as number) && !matching.has(window.text[i] as number)) continue;
      events++;
      const time = window.time[i] as number;
      const lane = window.lane[i] as number;
      const text = `${clock(data.begin, time, data.nanoseconds)}: ${name(data, window.name[i] as number)}: ${name(data, window.text[i] as number)}`;
      found.push({ text, from: time, to: time, ...(lane >= 0 ? { lane } : {}) });
    }
  }
  return found;
}
