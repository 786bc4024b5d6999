// Making elements. Texts of recordings only ever become text nodes.

/** Makes an element with attributes and children; strings become text. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Makes a button. */
export function button(text: string, press: () => void, attributes: Record<string, string> = {}): HTMLButtonElement {
  const made = make("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", press);
  return made;
}

/** Elements that a selector finds. */
export function all<E extends Element = HTMLElement>(selector: string, below: ParentNode = document): E[] {
  return [...below.querySelectorAll<E>(selector)];
}

/** Runs something once in each frame, whatever often it is asked for. */
export function eachFrame(work: () => void): () => void {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
}

/** Runs something when it has not been asked for some time. */
export function settled(work: () => void, ms: number): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, ms);
  };
}

/** Opens what an element is folded away in. */
export function unfold(element: Element): void {
  for (let at: Element | null = element.closest("details"); at; at = at.parentElement?.closest("details") ?? null) {
    (at as HTMLDetailsElement).open = true;
  }
}

/** Whether keys pressed now are meant for a field that text is typed into. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(input|textarea|select)$/i.test(target.tagName));
}

/** Writes a fragment into the address, without a new entry of the history. */
export function replaceHash(hash: string): void {
  try {
    history.replaceState(history.state, "", hash);
  } catch {
    // Some browsers do not let a page that is a file change its address; the view stays as it is.
  }
}
