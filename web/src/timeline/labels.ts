// How wide texts are. Asking a canvas for every label of every frame would take longer than all else.

/** Widths of letters in one font. */
export class Letters {
  private readonly widths = new Map<string, number>();

  constructor(private readonly context: CanvasRenderingContext2D) {}

  private letter(letter: string): number {
    let width = this.widths.get(letter);
    if (width === undefined) {
      if (this.widths.size > 5000) this.widths.clear();
      width = this.context.measureText(letter).width;
      this.widths.set(letter, width);
    }
    return width;
  }

  /** The width of a text, a little more where letters are set closer. */
  width(text: string): number {
    let sum = 0;
    for (const letter of text) sum += this.letter(letter);
    return sum;
  }

  /** As much of a text as fits; nothing where that would be less than three letters of a longer one. */
  fit(text: string, room: number): string {
    const dots = this.letter("…");
    let sum = 0;
    let at = 0;
    // Up to where letters and dots fit.
    let cut = 0;
    for (const letter of text) {
      sum += this.letter(letter);
      if (sum > room) return cut > 2 ? `${text.slice(0, cut)}…` : "";
      at += letter.length;
      if (sum + dots <= room) cut = at;
    }
    return text;
  }
}
