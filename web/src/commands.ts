// Commands that print what the page says: each gets a button that copies it.

import { copier } from "./copy.js";
import { all } from "./dom.js";

/** Adds the buttons. */
export function start(): void {
  for (const line of all("p.command")) {
    const code = line.querySelector("code");
    if (!code) continue;
    const command = (code.textContent ?? "").trim();
    line.append(copier("Copy", () => command, { class: "small copy", "aria-label": `Copy: ${command}` }));
  }
}
