// A finding as Markdown, for a ticket or a mail.

import { copier } from "./copy.js";
import { neutral } from "./csv.js";
import { all } from "./dom.js";

/** What a finding says. */
export interface Ticket {
  title: string;
  facts: string;
  evidence: string[];
  cause: string;
  remedies: { what: string; more: [string, string][] }[];
  /** The recording, and the command that prints the finding. */
  report: string;
  command: string;
}

/** A text without anything that Markdown takes for markup, on one line: names of a recording are whatever they are. */
export function plain(text: string): string {
  const line = neutral(text.replace(/\s+/g, " ").trim());
  return line.replace(/[\\`*_[\]<>|~]/g, "\\$&").replace(/^([#+-]|\d+(?=[.)]))/, "\\$1");
}

/** A text as code, whatever backticks it has. */
export function code(text: string): string {
  const line = neutral(text.replace(/\s+/g, " ").trim());
  const longest = Math.max(0, ...[...line.matchAll(/`+/g)].map((found) => found[0].length));
  const fence = "`".repeat(longest + 1);
  return longest > 0 ? `${fence} ${line} ${fence}` : fence + line + fence;
}

/** The ticket's text. */
export function markdown(ticket: Ticket): string {
  const out = [`### ${plain(ticket.title)}`, "", plain(ticket.facts), "", "**Evidence**", ""];
  out.push(...ticket.evidence.map((text) => `- ${plain(text)}`), "");
  if (ticket.cause !== "") out.push(`**Cause:** ${plain(ticket.cause)}`, "");
  ticket.remedies.forEach(({ what, more }, at) => {
    out.push(`**Remedy ${at + 1}:** ${plain(what)}`, "", ...more.map(([name, text]) => `- ${plain(name)}: ${plain(text)}`), ...(more.length > 0 ? [""] : []));
  });
  out.push(`From ${code(ticket.report)}${ticket.command === "" ? "" : `; ${code(ticket.command)} prints it`}.`);
  return `${out.join("\n")}\n`;
}

function text(element: Element | null | undefined): string {
  return (element?.textContent ?? "").replace(/\s+/g, " ").trim();
}

/** A copy without what can be pressed. */
function withoutButtons(element: Element): Element {
  const copy = element.cloneNode(true) as Element;
  for (const one of all("button", copy)) one.remove();
  return copy;
}

/** What stands behind a label. */
function behind(element: Element | null | undefined): string {
  const label = element?.querySelector(".label");
  return text(element).slice(text(label).length).trim();
}

/** Reads a finding of the page. */
export function read(finding: Element): Ticket {
  const remedies = all(".remedy", finding).map((one) => ({
    what: behind(one.querySelector("p")),
    more: all("dt", one).map((name): [string, string] => [text(name), text(name.nextElementSibling)]),
  }));
  // The command of all findings of a recording is the next one.
  let next: Element | null = finding.nextElementSibling;
  while (next && !next.matches("p.command")) next = next.nextElementSibling;
  return {
    title: text(finding.querySelector("h3, h4")).replace(/^\d+\. /, ""),
    facts: text(finding.querySelector(".facts")),
    // A link to all of a recording leads nowhere in a ticket; times do.
    evidence: all(".evidence > li", finding).map((one) => text(withoutButtons(one)).replace(/,? ?show on timeline$/, "").trim()),
    cause: behind(finding.querySelector(".cause")),
    remedies,
    report: document.title.replace(/^trapline report: /, ""),
    command: text(next?.querySelector("code")),
  };
}

/** Gives every finding a button that copies it. */
export function start(): void {
  for (const finding of all(".finding")) {
    const title = text(finding.querySelector("h3, h4"));
    const button = copier("Copy as Markdown", () => markdown(read(finding)), { class: "small copy-ticket", "aria-label": `Copy as Markdown: ${title}` });
    finding.prepend(button);
  }
}
