//! The page: what stands around its sections.

use std::fmt::Write;

use render::flame_picture;
use render::html::{escape, source};

use crate::out::Out;
use crate::{
    Against, Recording, against, bars, exits, findings, flame, paths, quality, sched, timeline,
    vcpus,
};

/// What the front end is built to (`web/`).
const SCRIPT: &str = include_str!("../../../web/dist/report.js");
const STYLE: &str = include_str!("../../../web/dist/report.css");
/// The style of the figures that this crate draws.
const FIGURES: &str = include_str!("figures.css");

/// The sections, in their order: id and heading.
const SECTIONS: [(&str, &str); 10] = [
    ("findings", "What is wrong, and what to do"),
    ("quality", "Can the recording be trusted"),
    ("vcpus", "Where the time went"),
    ("exits", "Exits"),
    ("paths", "Paths"),
    ("timeline", "Timeline"),
    ("sched", "Scheduling"),
    ("flame", "Flame graphs"),
    ("compare", "Comparison"),
    ("commands", "How this was made"),
];

/// A report as a page.
#[derive(Debug, Clone)]
pub struct Page<'p> {
    /// Its heading.
    pub title: &'p str,
    /// The version of trapline that makes it.
    pub version: &'p str,
    /// What was found of each recording.
    pub recordings: &'p [Recording<'p>],
    /// What they were compared with.
    pub against: Option<Against<'p>>,
}

impl Page<'_> {
    /// Returns the page as the text of a file.
    pub fn html(&self) -> String {
        let body = self.body();
        let has_flames = self.flames() > 0;
        let mut style = format!("{STYLE}\n{FIGURES}");
        let mut scripts = vec![SCRIPT];
        if has_flames {
            style.push_str(&flame_picture::style());
            scripts.push(flame_picture::SCRIPT);
        }
        let sources: Vec<String> = scripts.iter().map(|script| source(script)).collect();
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; style-src {}; \
             base-uri 'none'; form-action 'none'\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{}</title>\n\
             <style>{style}</style>\n</head>\n<body>\n",
            sources.join(" "),
            source(&style),
            escape(self.title)
        );
        out.push_str(&body);
        for script in scripts {
            let _ = writeln!(out, "<script>{script}</script>");
        }
        out.push_str("</body>\n</html>\n");
        out
    }

    /// How many flame graphs it has.
    fn flames(&self) -> usize {
        self.recordings.iter().map(|one| one.flames.len()).sum()
    }

    fn body(&self) -> String {
        let mut out = Out {
            several: self.recordings.len() > 1,
            ..Out::default()
        };
        let _ = write!(
            out.html,
            "<header><h1>{}</h1>\n<nav aria-label=\"sections\">",
            escape(self.title)
        );
        for (id, heading) in SECTIONS {
            let _ = writeln!(out.html, "<a href=\"#{id}\">{heading}</a>");
        }
        out.markup("</nav>\n<div id=\"search\"></div>\n</header>\n<main>\n");
        out.markup(bars::PATTERNS);
        for (id, heading) in SECTIONS {
            let _ = writeln!(out.html, "<section id=\"{id}\">\n<h2>{heading}</h2>");
            match id {
                "compare" => {
                    out.recording = 0;
                    against::section(self.recordings, self.against.as_ref(), &mut out);
                }
                "commands" => self.commands(&mut out),
                id => self.each(id, &mut out),
            }
            out.markup("</section>\n");
        }
        let _ = writeln!(
            out.html,
            "</main>\n<footer><p>Made by trapline {}.</p></footer>",
            escape(self.version)
        );
        out.html
    }

    /// Writes a section that has a part for each recording.
    fn each(&self, id: &str, out: &mut Out) {
        for (at, recording) in self.recordings.iter().enumerate() {
            out.recording = at;
            if out.several {
                let _ = writeln!(out.html, "<h3>{}</h3>", escape(recording.name));
            }
            match id {
                "findings" => findings::section(recording, out),
                "quality" => quality::section(recording, out),
                "vcpus" => vcpus::section(recording, out),
                "exits" => exits::section(recording, out),
                "paths" => paths::section(recording, out),
                "timeline" => timeline::section(recording, out),
                "sched" => sched::section(recording, out),
                _ => flame::section(recording, self.flames(), out),
            }
        }
    }

    /// Writes all commands that the page has named.
    fn commands(&self, out: &mut Out) {
        out.paragraph(
            "Each number of this page is printed by one of these commands, as text, and with --format json or --format csv \
             for programs. They are run in the folder in which this page was made.",
        );
        let commands = std::mem::take(&mut out.commands);
        let mut told: Vec<(String, Vec<String>)> = Vec::new();
        for (what, command) in commands {
            match told.iter_mut().find(|(known, _)| *known == command) {
                Some((_, all)) => all.push(what),
                None => told.push((command, vec![what])),
            }
        }
        out.markup("<dl class=\"commands\">\n");
        for (command, what) in told {
            let _ = writeln!(
                out.html,
                "<dt>{}</dt><dd><p class=\"command\"><code>{}</code></p></dd>",
                escape(&what.join("; ")),
                escape(&command)
            );
        }
        out.markup("</dl>\n");
    }
}
