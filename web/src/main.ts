// What the report's page does. All of it stands in the page without this script, but the timeline.

import { measured } from "./columns.js";
import { last } from "./copy.js";
import * as commands from "./commands.js";
import { all, make } from "./dom.js";
import * as evidence from "./evidence.js";
import * as explain from "./explain.js";
import * as folds from "./folds.js";
import { parse } from "./hash.js";
import * as overview from "./overview.js";
import * as plots from "./plots.js";
import * as search from "./search.js";
import * as tables from "./tables.js";
import { decode } from "./timeline/data.js";
import * as ticket from "./ticket.js";
import * as vms from "./vms.js";
import { Timeline } from "./timeline/timeline.js";

/** What tests and the curious find in `window.trapline`. */
interface Exposed {
  timelines: Timeline[];
  /** What was copied last, and how. */
  copied: { text: string; way: string };
  /** How often tables were measured. */
  measured: { times: number };
  /** True when everything has been made, and how long after the page was asked for that was, in milliseconds. */
  ready: boolean;
  readyMs: number;
}

async function timeline(host: HTMLElement): Promise<Timeline | undefined> {
  const base64 = host.querySelector("script.timeline-data")?.textContent ?? "";
  const wait = make("p", { class: "note" }, "The timeline is being unpacked.");
  host.append(wait);
  try {
    if (!("DecompressionStream" in window)) throw new Error("this browser cannot unpack it; those since 2023 can");
    const data = await decode(base64);
    wait.remove();
    if (data.lanes.length === 0) {
      host.append(make("p", { class: "note" }, "The recording has nothing that a timeline could show."));
      return undefined;
    }
    return new Timeline(host, data, Number(host.dataset["recording"] ?? "0"));
  } catch (error) {
    wait.textContent = `The timeline cannot be shown: ${error instanceof Error ? error.message : String(error)}.`;
    return undefined;
  }
}

/** Opens the place that the address names, with the VM that it names alone. */
function follow(timelines: readonly Timeline[], choose: ((vm: string) => void) | undefined): void {
  const place = parse(location.hash);
  if (!place) return;
  if (place.vm !== "") choose?.(place.vm);
  timelines.find((one) => one.recording === place.recording)?.goto(place);
}

async function start(): Promise<void> {
  const exposed: Exposed = { timelines: [], copied: last, measured, ready: false, readyMs: NaN };
  (window as unknown as { trapline: Exposed }).trapline = exposed;
  document.documentElement.classList.add("scripted");
  folds.start();
  commands.start();
  tables.start();
  plots.start();
  const made = await Promise.all(all(".timeline").map(timeline));
  exposed.timelines.push(...made.filter((one) => one !== undefined));
  evidence.start(exposed.timelines);
  explain.start(exposed.timelines);
  ticket.start();
  search.start(exposed.timelines);
  overview.start(exposed.timelines);
  const choose = vms.start(exposed.timelines);
  window.addEventListener("hashchange", () => follow(exposed.timelines, choose));
  // A link that is pressed again leads there again, though the address stays.
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href^='#t=']") : null;
    if (link && link.getAttribute("href") === location.hash) follow(exposed.timelines, choose);
  });
  follow(exposed.timelines, choose);
  exposed.readyMs = performance.now();
  exposed.ready = true;
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => void start());
else void start();
