//! The page: what stands around its sections.

use std::fmt::Write as _;
use std::io;

use render::flame_picture;
use render::html::{escape, source};
use render::part::PicturePart;
use render::parts::PARTS;

use crate::out::{PageWriter, TableLabel};
use crate::{
    Recording, ReportComparison, against, bars, exits, findings, flame, overview, paths, quality,
    sched, timeline, vcpus,
};

/// What the front end is built to (`web/`).
const SCRIPT: &str = include_str!("../../../web/dist/report.js");
const STYLE: &str = include_str!("../../../web/dist/report.css");
/// The style of the figures that this crate draws.
const FIGURES: &str = include_str!("figures.css");

/// What a section has.
#[derive(Clone, Copy)]
enum Contents {
    /// Something of each recording.
    Each(fn(&Recording<'_>, &mut PageWriter)),
    /// A part of each recording's picture.
    Part(&'static PicturePart),
    /// Something of all together.
    Whole(fn(&Page<'_>, &mut PageWriter)),
}

/// How much of a section is seen before anybody asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SectionFold {
    /// All of it.
    Whole,
    /// Its heading.
    Folded,
    /// Its heading, unless findings rest on numbers that stand in it.
    Evidence,
}

/// A section: its id, its heading, what it has, and how much of that is seen at first.
type Section = (&'static str, &'static str, Contents, SectionFold);

/// Returns the sections, in their order: what is wrong, when, why, and what that rests on; then all else.
fn sections(recordings: &[Recording<'_>], is_compared: bool) -> impl Iterator<Item = Section> {
    use Contents::{Each, Part, Whole};
    use SectionFold::{Evidence, Folded};
    let overview = (
        "overview",
        "Overview",
        Whole(|page, out| page.overview(out)),
        SectionFold::Whole,
    );
    // Who compares finds what changed most in the overview, and all of it behind what findings rest on.
    let compare = |fold| {
        (
            "compare",
            "Comparison",
            Whole(|page: &Page<'_>, out: &mut PageWriter| page.comparison(out)),
            fold,
        )
    };
    let compared = is_compared.then(|| compare(SectionFold::Whole));
    let first: [Section; 4] = [
        (
            "timeline",
            "Timeline",
            Each(timeline::section),
            SectionFold::Whole,
        ),
        (
            "findings",
            "What is wrong, and what to do",
            Each(findings::section),
            SectionFold::Whole,
        ),
        ("exits", "Exits", Each(exits::section), Evidence),
        ("paths", "Paths", Each(paths::section), Evidence),
    ];
    let then: [Section; 3] = [
        (
            "quality",
            "Can the recording be trusted",
            Each(quality::section),
            Folded,
        ),
        ("vcpus", "Where the time went", Each(vcpus::section), Folded),
        ("sched", "Scheduling", Each(sched::section), Folded),
    ];
    // What only some texts have is no news where it is not there.
    let has = |part: &PicturePart| {
        let mut all = recordings.iter();
        all.any(|one| (part.document)(one.picture).is_some())
    };
    let parts = (PARTS.iter()).filter(move |part| !part.nothing.is_empty() || has(part));
    let parts = parts.map(|part| (part.name, part.heading, Part(part), Folded));
    let flame = ("flame", "Flame graphs", Each(flame::section), Folded);
    let commands = (
        "commands",
        "How this was made",
        Whole(|page: &Page<'_>, out: &mut PageWriter| page.commands(out)),
        Folded,
    );
    std::iter::once(overview)
        .chain(first)
        .chain(compared)
        .chain(then)
        .chain(parts)
        .chain([flame])
        .chain((!is_compared).then(|| compare(Folded)))
        .chain([commands])
}

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
    pub against: Option<ReportComparison<'p>>,
}

/// The sections of a page.
struct MadeSections {
    /// A link to each.
    links: String,
    /// What they are made of, one behind the other.
    texts: Vec<String>,
}

impl Page<'_> {
    /// Writes the page as the text of a file. Its sections are made before the first of them is written: its head says
    /// which there are.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let made = self.made_sections();
        let has_flames = self.flames() > 0;
        let mut style = format!("{STYLE}\n{FIGURES}");
        let mut scripts = vec![SCRIPT];
        if has_flames {
            style.push_str(&flame_picture::style());
            scripts.push(flame_picture::SCRIPT);
        }
        let sources: Vec<String> = scripts.iter().map(|script| source(script)).collect();
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; style-src {}; \
             base-uri 'none'; form-action 'none'\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>{}</title>\n\
             <style>{style}</style>\n</head>\n<body>\n",
            sources.join(" "),
            source(&style),
            escape(self.title)
        )?;
        write!(
            out,
            "<header><h1>{}</h1>\n<nav aria-label=\"sections\">{}</nav>\n<div id=\"search\"></div>\n\
             </header>\n<main>\n{}",
            escape(self.title),
            made.links,
            bars::PATTERNS,
        )?;
        for text in &made.texts {
            out.write_all(text.as_bytes())?;
        }
        write!(
            out,
            "</main>\n<footer><p>Made by trapline {}.</p></footer>",
            escape(self.version)
        )?;
        for script in scripts {
            writeln!(out, "<script>{script}</script>")?;
        }
        out.write_all(b"</body>\n</html>\n")
    }

    /// How many flame graphs it has.
    fn flames(&self) -> usize {
        self.recordings.iter().map(|one| one.flames.len()).sum()
    }

    /// Makes all sections.
    fn made_sections(&self) -> MadeSections {
        let mut out = PageWriter {
            several: self.recordings.len() > 1,
            flames: self.flames(),
            ..PageWriter::default()
        };
        // Sections are made first: those that have nothing are left out, and their reasons stand together.
        let (mut links, mut texts) = (String::new(), Vec::new());
        let mut absent = Vec::new();
        for (id, heading, contents, fold) in sections(self.recordings, self.against.is_some()) {
            out.reasons.clear();
            match contents {
                Contents::Each(section) => self.each(&mut out, section),
                Contents::Part(one) => {
                    self.each(&mut out, |recording, out| part(one, recording, out))
                }
                Contents::Whole(section) => section(self, &mut out),
            }
            let html = std::mem::take(&mut out.html);
            // A reason for each recording, and nothing else.
            let whole = if id == "compare" {
                1
            } else {
                self.recordings.len()
            };
            if out.reasons.len() == whole && out.is_nothing(&html) {
                out.reasons.dedup();
                absent.extend(out.reasons.drain(..).map(|why| format!("{heading}: {why}")));
                continue;
            }
            let _ = writeln!(links, "<a href=\"#{id}\">{heading}</a>");
            let (begin, end) = match fold {
                SectionFold::Whole => (format!("<h2>{heading}</h2>"), ""),
                SectionFold::Folded | SectionFold::Evidence => {
                    let is_open = fold == SectionFold::Evidence && self.is_evidence(id);
                    let open = if is_open { " open=\"\"" } else { "" };
                    let begin = format!(
                        "<details class=\"section\"{open}><summary><h2>{heading}</h2></summary>"
                    );
                    (begin, "</details>")
                }
            };
            texts.push(format!("<section id=\"{id}\">\n{begin}\n"));
            texts.push(html);
            texts.push(format!("{end}</section>\n"));
        }
        if !absent.is_empty() {
            links.push_str("<a href=\"#absent\">Not here</a>\n");
            out.list(&absent);
            let list = std::mem::take(&mut out.html);
            texts.push(format!(
                "<section id=\"absent\">\n<h2>What is not here, and why</h2>\n{list}</section>\n"
            ));
        }
        MadeSections { links, texts }
    }

    /// Returns whether findings rest on what a section has.
    fn is_evidence(&self, section: &str) -> bool {
        let mut evidence = self.recordings.iter().flat_map(Recording::evidence);
        evidence.any(|one| match section {
            "exits" => !one.rows.is_empty(),
            "paths" => !one.instances.is_empty(),
            _ => false,
        })
    }

    /// Writes what one wants to know first.
    fn overview(&self, out: &mut PageWriter) {
        self.each(out, overview::section);
        out.recording = 0;
        if let Some(against) = &self.against {
            overview::changes(against, out);
        }
    }

    /// Writes a section that has something for each recording.
    fn each(&self, out: &mut PageWriter, section: impl Fn(&Recording<'_>, &mut PageWriter)) {
        for (at, recording) in self.recordings.iter().enumerate() {
            out.recording = at;
            if out.several {
                let _ = writeln!(out.html, "<h3>{}</h3>", escape(recording.name));
            }
            section(recording, out);
        }
    }

    /// Writes what the recordings were compared with.
    fn comparison(&self, out: &mut PageWriter) {
        out.recording = 0;
        against::section(self.recordings, self.against.as_ref(), out);
    }

    /// Writes all commands that the page has named.
    fn commands(&self, out: &mut PageWriter) {
        out.paragraph(
            "Each number of this page is printed by one of these commands, as text, and with --format json or --format \
             csv for programs. They are run in the folder in which this page was made.",
        );
        let commands = std::mem::take(&mut out.commands);
        let mut printed: Vec<(String, Vec<String>)> = Vec::new();
        for (what, command) in commands {
            match printed.iter_mut().find(|(known, _)| *known == command) {
                Some((_, all)) => all.push(what),
                None => printed.push((command, vec![what])),
            }
        }
        out.markup("<dl class=\"commands\">\n");
        for (command, what) in printed {
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

/// Writes a part of a picture.
fn part(part: &PicturePart, recording: &Recording<'_>, out: &mut PageWriter) {
    let picture = recording.picture;
    if (part.document)(picture).is_none() {
        out.nothing(match recording.is_printed() {
            true => "Printed tables do not have this.",
            false => part.nothing,
        });
        return;
    }
    let command = recording.invocation.command(part.name, "");
    let label = TableLabel {
        name: part.name,
        caption: part.caption,
        command: &command,
    };
    out.table(recording, label, |frame| (part.html)(picture, frame));
}
