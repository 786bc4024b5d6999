//! A report's page, read as XML: it is well-formed but for the scripts and styles that it embeds.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Run, run};

/// A table of a page.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// What it is called.
    pub name: String,
    /// The command that prints it.
    pub command: String,
    /// Its columns.
    pub columns: Vec<String>,
    /// Its cells, by row: the exact value where there is one, and the text.
    pub rows: Vec<Vec<(Option<String>, String)>>,
}

/// A page.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// The file's text.
    pub text: String,
    /// The same without what the embedded scripts and styles say.
    pub xml: String,
}

/// Takes out what stands between an opening tag and its end.
fn without(text: &str, open: &str, close: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(open) {
        out.push_str(before);
        out.push_str(open);
        rest = after.split_once(close).map_or("", |(_, behind)| behind);
        out.push_str(close);
    }
    out + rest
}

impl Page {
    /// Makes the page of a recording.
    pub(crate) fn of(inputs: &[&Path], args: &[&str]) -> (Run, Option<Page>) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("report.html");
        let mut all: Vec<&std::ffi::OsStr> = vec!["report".as_ref(), "-o".as_ref()];
        all.push(file.as_os_str());
        all.extend(args.iter().map(AsRef::<std::ffi::OsStr>::as_ref));
        all.extend(inputs.iter().map(|path| path.as_os_str()));
        let run = run(all);
        let page = std::fs::read_to_string(&file).ok();
        (run, page.map(Page::read))
    }

    /// Reads a page's text.
    pub(crate) fn read(text: String) -> Page {
        let body = text.strip_prefix("<!DOCTYPE html>\n").expect("a document");
        let xml = without(body, "<script>", "</script>");
        let xml = without(&xml, "<style>", "</style>");
        Page { text, xml }
    }

    /// Returns its elements.
    pub(crate) fn document(&self) -> roxmltree::Document<'_> {
        roxmltree::Document::parse(&self.xml).expect("a page is well-formed")
    }

    /// Returns its tables.
    pub(crate) fn tables(&self) -> Vec<Table> {
        let document = self.document();
        let tables = document.descendants();
        let tables = tables.filter(|node| node.has_tag_name("table"));
        tables.map(table).collect()
    }

    /// Returns its commands, each once.
    pub(crate) fn commands(&self) -> Vec<String> {
        let document = self.document();
        let section = document
            .descendants()
            .find(|node| node.attribute("id") == Some("commands"))
            .expect("a list of commands");
        let commands = section.descendants();
        let commands = commands.filter(|node| node.attribute("class") == Some("command"));
        commands.map(text_of).collect()
    }
}

/// Returns all text in an element.
pub(crate) fn text_of(node: roxmltree::Node<'_, '_>) -> String {
    let texts = node.descendants().filter(|node| node.is_text());
    texts.filter_map(|node| node.text()).collect()
}

fn table(node: roxmltree::Node<'_, '_>) -> Table {
    let attribute = |name: &str| node.attribute(name).unwrap_or_default().to_owned();
    let of = |tag: &'static str| node.descendants().filter(move |one| one.has_tag_name(tag));
    let columns = of("th").map(|one| one.attribute("data-column").unwrap_or_default().to_owned());
    let rows = of("tbody").flat_map(|body| body.children().filter(|one| one.has_tag_name("tr")));
    let rows = rows.map(|row| {
        let cells = row.children().filter(|one| one.has_tag_name("td"));
        cells
            .map(|cell| (cell.attribute("data-v").map(str::to_owned), text_of(cell)))
            .collect()
    });
    Table {
        name: attribute("data-name"),
        command: attribute("data-command"),
        columns: columns.collect(),
        rows: rows.collect(),
    }
}

/// Runs a command of a page as a shell does, with more arguments behind it.
pub(crate) fn shell(command: &str, more: &str) -> Run {
    let words = command.strip_prefix("trapline ").expect("a command");
    let program = super::trapline().get_program().to_owned();
    let variables: BTreeMap<&str, std::ffi::OsString> = [
        ("PROGRAM", program),
        ("TRAPLINE_NO_LOCAL_FILES", "1".into()),
    ]
    .into();
    let output = std::process::Command::new("/bin/bash")
        .env_clear()
        .envs(variables)
        .args(["-c", &format!("\"$PROGRAM\" {words} {more}")])
        .output()
        .expect("a shell");
    Run {
        status: output.status.code().unwrap_or(-1),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
