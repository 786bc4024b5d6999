// The clipboard. A page that is opened from a file may have none to ask for, so the oldest way stays as the last.

import { button, make } from "./dom.js";

/** What was copied last, for tests, which cannot look into the clipboard. */
export const last = { text: "", way: "" };

let status: HTMLElement | undefined;

/** Says something to screen readers. */
export function say(text: string): void {
  if (!status) {
    status = make("div", { class: "sr-only", role: "status", "aria-live": "polite" });
    document.body.append(status);
  }
  status.textContent = text;
}

function byCommand(text: string): boolean {
  const area = make("textarea", { class: "sr-only", readonly: "", "aria-hidden": "true", tabindex: "-1" });
  area.value = text;
  const focus = document.activeElement;
  document.body.append(area);
  area.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    done = false;
  }
  area.remove();
  if (focus instanceof HTMLElement) focus.focus({ preventScroll: true });
  return done;
}

/** Copies a text; returns whether it could. */
export async function copy(text: string): Promise<boolean> {
  last.text = text;
  last.way = "clipboard";
  try {
    // It is missing in pages that are not opened safely, whatever its type says.
    const clipboard = navigator.clipboard as Clipboard | undefined;
    if (clipboard) {
      await clipboard.writeText(text);
      return true;
    }
  } catch {
    // Not allowed here: the other way may be.
  }
  last.way = "command";
  return byCommand(text);
}

/** Makes a button that copies what is asked for when it is pressed. */
export function copier(label: string, text: () => string, attributes: Record<string, string> = {}): HTMLButtonElement {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const made = button(
    label,
    () => {
      void copy(text()).then((done) => {
        made.textContent = done ? "Copied" : "Not copied";
        say(done ? "Copied" : "The browser does not let this page copy");
        clearTimeout(timer);
        timer = setTimeout(() => (made.textContent = label), 1500);
      });
    },
    attributes,
  );
  return made;
}
