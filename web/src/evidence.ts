// What findings rest on, on the timeline: a row of a table has no time of its own, so one of its stretches is shown.

import { all, button } from "./dom.js";
import { example } from "./timeline/find.js";
import type { Timeline } from "./timeline/timeline.js";

/** Gives links of findings to rows of exits a button that shows one of these exits, where a timeline has one. */
export function start(timelines: readonly Timeline[]): void {
  for (const link of all<HTMLAnchorElement>(".finding a[href^='#row-']")) {
    // The table's name stands before the row's.
    const key = /^\S+ (.+)$/.exec((link.textContent ?? "").trim())?.[1];
    if (key === undefined) continue;
    // Ids of the second recording's tables end in its number.
    const recording = Number(/-(\d+)-\d+$/.exec(link.hash)?.[1] ?? "1") - 1;
    const timeline = timelines.find((one) => one.recording === recording);
    const found = timeline && example(timeline.data, key);
    if (timeline && found) link.after(" ", button("show one on timeline", () => timeline.show(found), { class: "small", "aria-label": `Show one ${key} on the timeline` }));
  }
}
