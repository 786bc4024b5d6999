// What colours, patterns and letters mean: one colour, one meaning.

import { make } from "../dom.js";
import type { Data } from "./data.js";
import { type Look, type Meaning, MEANINGS, meaningOf, type Palette } from "./palette.js";
import { isScatter } from "./scatter.js";

const [WIDTH, HEIGHT] = [22, 14];

/** States that look the same, and what they are called. */
interface Shown {
  look: Look;
  meaning: Meaning;
  texts: string[];
}

/** What the legend has: one item for each look. */
export function items(data: Data, palette: Palette): Shown[] {
  const groups = new Set(data.lanes.map((lane) => lane.group.replace(/s$/, "")));
  const shown = new Map<string, Shown>();
  const add = (id: string, look: Look, text: string): void => {
    const item = shown.get(id) ?? { look, meaning: meaningOf(id), texts: [] };
    if (!item.texts.includes(text)) item.texts.push(text);
    shown.set(id, item);
  };
  data.kinds.forEach((kind, index) => {
    const look = palette.looks[index];
    if (!look || (kind.of !== "all" && !groups.has(kind.of))) return;
    const text = kind.of === "guest" && kind.id !== "unknown" && kind.id !== "idle" ? `${kind.label} of the guest` : kind.label;
    if (kind.id !== "running") return add(kind.id, look, text);
    // A thread that runs is the VMM's, or another task.
    const threads = data.lanes.filter((lane) => lane.group === "threads");
    if (threads.some((lane) => lane.vm !== "")) add("running_of_vm", palette.ofVm[index] ?? look, "a thread of the VM runs");
    if (threads.some((lane) => lane.vm === "")) add("running", look, "another thread runs");
  });
  const outside = shown.get("outside");
  if (outside) outside.texts = ["left out or not recorded"];
  return [...shown.values()];
}

function swatch(look: Look, size: number): HTMLCanvasElement {
  const step = size / 8;
  const canvas = make("canvas", { "aria-hidden": "true", class: "swatch" });
  [canvas.width, canvas.height] = [WIDTH * step, HEIGHT * step];
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  const image = context.createImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  for (let at = 0; at < pixels.length; at++) {
    const [x, y] = [at % canvas.width, Math.floor(at / canvas.width)];
    pixels[at] = look.tile[(y % size) * size + (x % size)] as number;
  }
  context.putImageData(image, 0, 0);
  context.scale(step, step);
  context.fillStyle = look.fill;
  context.fillRect(5, 1, 12, HEIGHT - 2);
  context.fillStyle = look.ink;
  context.font = "bold 11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(look.letter, WIDTH / 2, HEIGHT / 2 + 1);
  return canvas;
}

/** Makes the legend, by what colours mean; it is made again when colours change. */
export function legend(data: Data, palette: Palette): HTMLElement[] {
  const all = items(data, palette);
  const parts = (Object.keys(MEANINGS) as Meaning[]).flatMap((meaning) => {
    const found = all.filter((item) => item.meaning === meaning);
    if (found.length === 0) return [];
    const list = make("ul", { "aria-label": `States: ${MEANINGS[meaning]}` });
    for (const { look, texts } of found) list.append(make("li", {}, swatch(look, palette.size), texts.join(", ")));
    return [make("div", { class: "tl-legend-part" }, make("span", { class: "soft" }, `${MEANINGS[meaning]}:`), list)];
  });
  return data.marks.some(isScatter) ? [...parts, points(data)] : parts;
}

/** What points of paths are. */
function points(data: Data): HTMLElement {
  const list = make("ul", { "aria-label": "Points of paths" });
  const item = (glyph: string, look: string, text: string): void => {
    list.append(make("li", {}, make("span", { class: `glyph ${look}`, "aria-hidden": "true" }, glyph), text));
  };
  item("■", "path", "one instance: the higher, the longer it took (logarithmic)");
  item("□", "path", "several instances, at the longest of them");
  if (data.marks.some((marks) => Number.isFinite(marks.slow))) item("◆", "slow", "slow: above the dashed line (hollow: one of several)");
  return make("div", { class: "tl-legend-part" }, make("span", { class: "soft" }, "Paths:"), list);
}
