// What colours, patterns and letters mean.

import { make } from "../dom.js";
import type { Data } from "./data.js";
import type { Palette } from "./palette.js";
import { isScatter } from "./scatter.js";

const TITLES: Record<string, string> = { vcpu: "vCPUs", guest: "Guests", thread: "Threads", cpu: "CPUs", all: "All" };
const [WIDTH, HEIGHT] = [22, 14];

/** Makes the legend; it is made again when colours change. */
export function legend(data: Data, palette: Palette): HTMLElement[] {
  const step = palette.size / 8;
  const hasGuests = data.lanes.some((lane) => lane.group === "guests");
  const groups = [...new Set(data.kinds.map((kind) => kind.of))].filter((of) => of !== "guest" || hasGuests);
  const parts = groups.map((of) => {
    const list = make("ul", { "aria-label": `States of ${TITLES[of] ?? of}` });
    data.kinds.forEach((kind, index) => {
      const look = palette.looks[index];
      if (kind.of !== of || !look) return;
      const canvas = make("canvas", { "aria-hidden": "true", class: "swatch" });
      [canvas.width, canvas.height] = [WIDTH * step, HEIGHT * step];
      const context = canvas.getContext("2d");
      if (context) {
        const image = context.createImageData(canvas.width, canvas.height);
        const pixels = new Uint32Array(image.data.buffer);
        for (let at = 0; at < pixels.length; at++) {
          const [x, y] = [at % canvas.width, Math.floor(at / canvas.width)];
          pixels[at] = look.tile[(y % palette.size) * palette.size + (x % palette.size)] as number;
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
      }
      list.append(make("li", {}, canvas, kind.label));
    });
    return make("div", { class: "tl-legend-part" }, make("span", { class: "soft" }, `${TITLES[of] ?? of}:`), list);
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
