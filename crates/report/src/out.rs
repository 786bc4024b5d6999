//! What is written of a page: its HTML, and the commands that it names.

use std::fmt::Write;

use render::html::{Frame, TableEvents, escape};

use crate::Recording;
use crate::invocation::argument;

/// HTML under way.
#[derive(Debug, Default)]
pub(crate) struct PageWriter {
    /// The HTML.
    pub(crate) html: String,
    /// What each command prints, and the command, in the order in which the page names them.
    pub(crate) commands: Vec<(String, String)>,
    /// Which recording is written, from 0.
    pub(crate) recording: usize,
    /// Whether there are several.
    pub(crate) several: bool,
    /// How many flame graphs the page has.
    pub(crate) flames: usize,
    /// Why something is not there, of the section that is written.
    pub(crate) reasons: Vec<String>,
}

/// A table under way: its name, what it is of, and the command that prints it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableLabel<'t> {
    pub(crate) name: &'t str,
    pub(crate) caption: &'t str,
    pub(crate) command: &'t str,
}

/// Returns which command prints the numbers of a table, the row that all of it is of, and how their events are printed;
/// `None` of tables whose numbers have no single events.
fn explained(
    recording: &Recording<'_>,
    table: &str,
) -> Option<(&'static str, Option<String>, String)> {
    if recording.is_printed() {
        return None;
    }
    // A path that leads through guests needs their recordings too, and is not explained.
    let path = table.strip_prefix("path-").filter(|name| {
        let mut paths = recording.picture.paths.iter();
        paths.any(|path| path.name == *name)
    });
    let of = match table {
        "exits-vmexit" | "exits-ioport" | "exits-mmio" | "exits-msr" => "exits",
        "vcpus" => "vcpus",
        "sched-tasks" => "sched",
        "irqs" => "irqs",
        _ if path.is_some() => "paths",
        _ => return None,
    };
    let words = match path {
        Some(path) => format!("{of} {}", argument(path)),
        None => of.to_owned(),
    };
    let command = recording.invocation.explained(&words)?;
    Some((of, path.map(str::to_owned), command))
}

impl PageWriter {
    /// Returns an id that is this recording's own.
    pub(crate) fn id(&self, name: &str) -> String {
        let plain = |c: char| match c.is_ascii_alphanumeric() || c == '-' || c == '_' {
            true => c,
            false => '-',
        };
        let name: String = name.chars().map(plain).collect();
        match self.recording {
            0 => name,
            at => format!("{name}-{}", at + 1),
        }
    }

    /// Writes markup.
    pub(crate) fn markup(&mut self, markup: &str) {
        self.html.push_str(markup);
    }

    /// Writes a paragraph of text.
    pub(crate) fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.html, "<p>{}</p>", escape(text));
    }

    /// Says that a section has nothing, and why.
    pub(crate) fn nothing(&mut self, why: &str) {
        let _ = writeln!(self.html, "<p class=\"nothing\">{}</p>", escape(why));
        self.reasons.push(why.to_owned());
    }

    /// Returns whether HTML says that there is nothing, for each recording, and no more.
    pub(crate) fn is_nothing(&self, html: &str) -> bool {
        let mut lines = html.lines();
        lines.all(|line| line.starts_with("<p class=\"nothing\">") || line.starts_with("<h3>"))
    }

    /// Writes a list of texts; nothing without any.
    pub(crate) fn list<T: AsRef<str>>(&mut self, texts: impl IntoIterator<Item = T>) {
        let items = texts.into_iter();
        let items: String = items
            .map(|text| format!("<li>{}</li>\n", escape(text.as_ref())))
            .collect();
        if !items.is_empty() {
            let _ = writeln!(self.html, "<ul>\n{items}</ul>");
        }
    }

    /// Writes a heading: those of sections are of level 2, and where there are several recordings, theirs are of level
    /// 3.
    pub(crate) fn heading(&mut self, text: &str) {
        let level = if self.several { 4 } else { 3 };
        let _ = writeln!(self.html, "<h{level}>{}</h{level}>", escape(text));
    }

    /// Begins a part of a section that can be folded away, below a heading of its own.
    pub(crate) fn part(&mut self, heading: &str, is_open: bool) {
        let open = if is_open { " open=\"\"" } else { "" };
        let _ = write!(self.html, "<details class=\"part\"{open}><summary>");
        self.heading(heading);
        self.markup("</summary>\n");
    }

    /// Ends a part.
    pub(crate) fn end_part(&mut self) {
        self.markup("</details>\n");
    }

    /// Writes a command with what it prints, which stands among all commands too.
    pub(crate) fn command(&mut self, what: &str, command: &str) {
        let _ = writeln!(
            self.html,
            "<p class=\"command\"><code>{}</code></p>",
            escape(command)
        );
        self.note(what, command);
    }

    /// Adds a command to the list of all.
    pub(crate) fn note(&mut self, what: &str, command: &str) {
        let one = (what.to_owned(), command.to_owned());
        if !self.commands.contains(&one) {
            self.commands.push(one);
        }
    }

    /// Writes a table, which may turn out to have nothing.
    pub(crate) fn table(
        &mut self,
        recording: &Recording<'_>,
        label: TableLabel<'_>,
        html: impl FnOnce(&Frame<'_>) -> String,
    ) {
        let id = self.id(label.name);
        let explained = explained(recording, label.name);
        let events = explained.as_ref().map(|(of, row, command)| TableEvents {
            command,
            of,
            row: row.as_deref(),
            recording: self.recording,
        });
        let table = html(&Frame {
            name: &id,
            command: label.command,
            caption: label.caption,
            rows: label.name.starts_with("exits-"),
            events,
            layout: recording.layout(),
        });
        if !table.is_empty() {
            self.html.push_str(&table);
            self.note(label.caption, label.command);
        }
    }
}

/// Returns a text as it may stand in an element `script` that holds data: nothing in it ends the element.
pub(crate) fn data(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

/// Cuts a text to so many characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let text = render::neutral::name(text);
    if text.chars().count() <= most {
        return text.into_owned();
    }
    let begin: String = text.chars().take(most.saturating_sub(1)).collect();
    begin + "…"
}
