/*!
Flame graphs as pictures: an SVG file, an HTML page, or an element that any page can hold.

A picture is an element `svg.flame` with rectangles, which show without a script, and with all boxes as numbers, from
which [`SCRIPT`] draws what it is asked for. It takes nothing from elsewhere. Names are escaped twice: what steers is
made visible, and what is markup is written as text.
*/

mod boxes;
mod data;
mod palette;
#[cfg(test)]
mod tests;
mod text;

use std::fmt::Write;

use stacks::{Diff, LayoutBounds, Stacks};

use boxes::{Boxes, PAD, ROW, WIDTH};
use palette::BoxStyle;
use text::{fit, shown};

use crate::html::{markup as escape, source};

/// What draws all pictures of a page: it stands once in a page, behind them.
pub const SCRIPT: &str = include_str!("flame.js");
const STYLE: &str = include_str!("flame.css");

/// A box is at least this part of the whole: a pixel at a hundred times the width of a picture without a script.
const PARTS: u64 = 100 * WIDTH as u64;
/// Boxes with a frame of their own.
const MAX_BOXES: usize = 40_000;
/// What all names take.
const MAX_NAME_BYTES: usize = 1 << 20;
/// Levels, with that of all.
const MAX_LEVELS: u32 = 600;
/// What an element takes at most.
const MAX_BYTES: usize = 4_800_000;

/// How much narrower letters in boxes are than those of the heading.
const TITLE_SCALE: f64 = 0.66;
/// Letters of a line of notes in a picture without a script.
const NOTE_COLUMNS: usize = 180;
/// Lines of notes that are shown, of each as much as that.
const MAX_NOTES: usize = 12;

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub enum Graph<'p> {
    /// Stacks of one recording, with colours by part.
    Stacks(&'p Stacks),
    /// Those of two recordings, with colours by change.
    Diff(&'p Diff),
}

/// A picture.
#[derive(Debug, Clone, Copy)]
pub struct FlamePicture<'p> {
    /// Its heading.
    pub title: &'p str,
    /// What stands below: sentences.
    pub notes: &'p [String],
    /// What is drawn.
    pub graph: Graph<'p>,
    /// Whether weights are nanoseconds. Else they are shown as shares alone.
    pub nanoseconds: bool,
}

/// A picture that is drawn.
#[derive(Debug, Clone)]
pub struct Drawn {
    title: String,
    /// The attributes of the element, and what is in it.
    attributes: String,
    body: String,
    /// What has no box of its own, in sentences. The picture says it too.
    pub left_out: Vec<String>,
}

impl FlamePicture<'_> {
    /// Draws it, with as many boxes as have room.
    pub fn draw(&self) -> Drawn {
        let bounds = LayoutBounds {
            parts: PARTS,
            boxes: MAX_BOXES,
            name_bytes: MAX_NAME_BYTES,
            levels: MAX_LEVELS,
        };
        self.draw_at_most(bounds, MAX_BYTES)
    }

    /// Draws it within bounds, with as many of their boxes as take at most so many bytes, and no fewer than some
    /// hundreds.
    pub fn draw_at_most(&self, bounds: LayoutBounds, bytes: usize) -> Drawn {
        let mut bounds = bounds;
        loop {
            let drawn = self.draw_within(bounds);
            if drawn.body.len() <= bytes || bounds.boxes < 500 {
                return drawn;
            }
            bounds.boxes /= 2;
        }
    }

    fn draw_within(&self, bounds: LayoutBounds) -> Drawn {
        let boxes = Boxes::of(self, bounds);
        let title = shown(self.title);
        let left_out = boxes.left_out();
        let mut body = format!(
            "<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n<text class=\"title\" x=\"{PAD}\" \
             y=\"26\">{}</text>\n",
            escape(&fit(&title, f64::from(WIDTH - 2 * PAD) * TITLE_SCALE))
        );
        let mut y = 30;
        for note in self.notes.iter().chain(&left_out).take(MAX_NOTES) {
            for line in textwrap::wrap(&shown(note), NOTE_COLUMNS) {
                y += 16;
                let line = escape(&line);
                let _ = writeln!(
                    body,
                    "<text class=\"note\" x=\"{PAD}\" y=\"{y}\">{line}</text>"
                );
            }
        }
        y += 10;
        body.push_str(&legend(&boxes, &mut y));
        let top = y + 8;
        let (rectangles, levels) = boxes.rectangles();
        let height = top + levels * ROW + PAD;
        let _ = writeln!(
            body,
            "<g class=\"boxes\" transform=\"translate({PAD} {top})\">\n{rectangles}</g>"
        );
        let json = data::json(&boxes, self.nanoseconds, top);
        let _ = writeln!(body, "<metadata>{}</metadata>", escape_text(&json));
        let attributes = format!(
            "class=\"flame\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
             role=\"group\" aria-label=\"{}\"",
            escape(&title)
        );
        Drawn {
            title,
            attributes,
            body,
            left_out,
        }
    }
}

/// Escapes text between tags, where quotes are no markup: JSON has many.
fn escape_text(json: &str) -> String {
    json.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Returns the legend of the kinds that there are, and moves `y` below it.
fn legend(boxes: &Boxes<'_>, y: &mut u32) -> String {
    let all: &[BoxStyle] = match boxes.diff {
        None => &palette::PARTS,
        Some(_) => &palette::CHANGES,
    };
    let has = |look: &&BoxStyle| boxes.diff.is_some() || boxes.looks.contains(look);
    let mut out = "<g class=\"legend\">\n".to_owned();
    let mut x = PAD;
    for look in all.iter().filter(has) {
        let BoxStyle {
            class,
            mark,
            legend,
            ..
        } = look;
        let (mid, text, base) = (x + 9, x + 24, *y + 13);
        let _ = writeln!(
            out,
            "<g class=\"{class}\"><rect x=\"{x}\" y=\"{y}\" width=\"18\" height=\"17\" rx=\"1\"/>\
             <text class=\"mark\" x=\"{mid}\" y=\"{base}\">{mark}</text><text x=\"{text}\" \
             y=\"{base}\">{legend}</text></g>"
        );
        x += 24 + legend.chars().count() as u32 * 6 + 22;
    }
    out.push_str("</g>\n");
    *y += 18;
    out
}

impl Drawn {
    /// Returns the element, for a page that has [`style`] and [`SCRIPT`] once.
    pub fn element(&self) -> String {
        let Drawn {
            attributes, body, ..
        } = self;
        format!("<svg xmlns=\"http://www.w3.org/2000/svg\" {attributes}>\n{body}</svg>\n")
    }

    /// Returns an SVG file.
    pub fn svg(&self) -> String {
        let Drawn {
            title,
            attributes,
            body,
            ..
        } = self;
        let title = escape(title);
        let style = escape_text(&style());
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" {attributes}>\n<title>{title}</title>\n\
             <style>\n{style}</style>\n{body}<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>\n"
        )
    }

    /// Returns a page that has this picture alone.
    pub fn page(&self) -> String {
        let page = "body { margin: 0; }\n@media (prefers-color-scheme: dark) { body { background: #16181b; } }\n\
                    @page { size: landscape; margin: 1cm; }\n";
        let style = format!(":root {{ color-scheme: light dark; }}\n{page}{}", style());
        let policy = policy(&style);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{}</title>\n<style>{style}</style>\n</head>\n<body>\n{}\
             <script>{SCRIPT}</script>\n</body>\n</html>\n",
            escape(&self.title),
            self.element(),
        )
    }
}

/// Returns the rules of style of all pictures: they stand once in a page.
pub fn style() -> String {
    palette::style() + STYLE
}

/// Returns the content security policy of a page that has one element `style`, with this text, and one `script`, with
/// [`SCRIPT`]: these are named by their hash, and all else is forbidden.
pub fn policy(style: &str) -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        source(SCRIPT),
        source(style),
    )
}
