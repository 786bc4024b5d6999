// Sections that are folded away: what is asked for is opened, by a link, by the address, for printing.

import { all, unfold } from "./dom.js";

/** Opens what an address names, and what that is folded away in. Returns it, if it was folded away. */
function open(hash: string): Element | undefined {
  let name = hash.replace(/^#/, "");
  try {
    name = decodeURIComponent(name);
  } catch {
    // It names nothing then.
  }
  const target = name === "" ? null : document.getElementById(name);
  if (!target) return undefined;
  const own = target.querySelector<HTMLDetailsElement>(":scope > details:is(.section, .body)");
  const isFolded = own?.open === false || target.closest("details:not([open])") !== null;
  if (own) own.open = true;
  unfold(target);
  return isFolded ? target : undefined;
}

/** Opens it, and goes there: what was folded away had no place before. */
function follow(hash: string): void {
  open(hash)?.scrollIntoView({ block: "start" });
}

export function start(): void {
  follow(location.hash);
  window.addEventListener("hashchange", () => follow(location.hash));
  // A link that is pressed again leads there again, though the address stays.
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href^='#']") : null;
    const hash = link?.getAttribute("href");
    if (hash && hash === location.hash) follow(hash);
  });
  // On paper nothing can be opened.
  let folded: HTMLDetailsElement[] = [];
  window.addEventListener("beforeprint", () => {
    folded = all<HTMLDetailsElement>("details:not([open], .tl-keys, .columns-chooser)");
    for (const one of folded) one.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
  });
}
