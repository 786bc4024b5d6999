//! The answer as one HTML file: tables that sort by any column, each with the SQL that its numbers come from.

use std::io::{self, Write};

use super::FleetAnswer;
use super::screen_sql::statement;
use crate::view::StoreView;

const STYLE: &str = "\
body{font:14px/1.4 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em;color:#1a1a1a}\
table{border-collapse:collapse;margin:.5em 0}\
th,td{padding:.2em .8em .2em 0;text-align:left;border-bottom:1px solid #ddd}\
th button{all:unset;cursor:pointer;font-weight:600}th button:focus-visible{outline:2px solid #05c}\
td.n{text-align:right;font-variant-numeric:tabular-nums}\
code,pre{font:12px ui-monospace,monospace}pre{white-space:pre-wrap}\
@media(prefers-color-scheme:dark){body{background:#161616;color:#e6e6e6}th,td{border-color:#444}}";

const SCRIPT: &str = "\
for(const b of document.querySelectorAll('th button'))b.onclick=()=>{\
const th=b.closest('th'),at=th.cellIndex,body=th.closest('table').tBodies[0];\
const up=th.getAttribute('aria-sort')==='descending';\
for(const o of th.parentNode.cells)o.removeAttribute('aria-sort');\
th.setAttribute('aria-sort',up?'ascending':'descending');\
const k=r=>r.cells[at].dataset.v??r.cells[at].textContent;\
const c=(x,y)=>{const n=+k(x)-+k(y);return isNaN(n)?k(x).localeCompare(k(y)):n};\
body.append(...[...body.rows].sort((x,y)=>up?c(x,y):c(y,x)))}";

/// A cell: what people read, and what it is sorted by.
struct PageCell {
    shown: String,
    number: Option<f64>,
}

impl From<&str> for PageCell {
    fn from(text: &str) -> PageCell {
        PageCell {
            shown: text.to_owned(),
            number: None,
        }
    }
}

impl From<&String> for PageCell {
    fn from(text: &String) -> PageCell {
        text.as_str().into()
    }
}

fn number(number: f64, shown: String) -> PageCell {
    PageCell {
        shown,
        number: Some(number),
    }
}

fn count(value: u64) -> PageCell {
    number(value as f64, value.to_string())
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Marks that turn the direction of a line would show another text than is there.
            char if char.is_control()
                || ('\u{202a}'..='\u{202e}').contains(&char)
                || ('\u{2066}'..='\u{2069}').contains(&char) =>
            {
                out.push('\u{fffd}');
            }
            char => out.push(char),
        }
    }
    out
}

fn section(
    out: &mut dyn Write,
    title: &str,
    sql: &str,
    head: &[&str],
    rows: &[Vec<PageCell>],
) -> io::Result<()> {
    writeln!(out, "<section><h2>{}</h2>", escaped(title))?;
    if rows.is_empty() {
        writeln!(out, "<p>none</p>")?;
    } else {
        write!(out, "<table><thead><tr>")?;
        for name in head {
            write!(out, "<th scope=col><button>{}</button></th>", escaped(name))?;
        }
        writeln!(out, "</tr></thead><tbody>")?;
        for row in rows {
            write!(out, "<tr>")?;
            for cell in row {
                let shown = escaped(&cell.shown);
                match cell.number {
                    Some(number) => write!(out, "<td class=n data-v=\"{number}\">{shown}</td>")?,
                    None => write!(out, "<td>{shown}</td>")?,
                }
            }
            writeln!(out, "</tr>")?;
        }
        writeln!(out, "</tbody></table>")?;
    }
    writeln!(
        out,
        "<details><summary>SQL</summary><pre>{}</pre></details></section>",
        escaped(sql)
    )
}

fn ratio(value: f64) -> PageCell {
    number(value, format!("{value:.2}x"))
}

fn chance(value: f64) -> PageCell {
    number(value, format!("{value:.1e}"))
}

/// Writes the page.
pub(super) fn write(out: &mut dyn Write, answer: &FleetAnswer, view: &StoreView) -> io::Result<()> {
    let coverage = &answer.coverage;
    let day = coverage.day.replace('\'', "''");
    let days: Vec<String> = coverage
        .before
        .iter()
        .chain([&coverage.day])
        .cloned()
        .collect();
    let sql = |table: &str| statement(table, &days);
    writeln!(
        out,
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\"><title>fleet, {0}</title><style>{STYLE}</style><h1>Fleet, {0}</h1>",
        escaped(&coverage.day)
    )?;
    writeln!(
        out,
        "<p>{} hosts, {} recordings; held against {}. Peers by {}: {} groups, {} large enough to test.</p>",
        coverage.hosts,
        coverage.recordings,
        match coverage.before.as_slice() {
            [] => "no day before".to_owned(),
            days => escaped(&days.join(", ")),
        },
        escaped(&coverage.peers.join(", ")),
        coverage.groups,
        coverage.tested_groups
    )?;
    let unread = view.unread.iter();
    let unread = unread.map(|one| format!("{}: {}, left out", one.file.display(), one.why));
    let lists = [
        ("Missing", &coverage.missing),
        ("Lossy, not tested", &coverage.lossy),
    ];
    let lists = lists.into_iter().filter(|(_, hosts)| !hosts.is_empty());
    let lists = lists.map(|(what, hosts)| format!("{what}: {}", hosts.join(", ")));
    for line in lists.chain(unread).chain(answer.limits.iter().cloned()) {
        writeln!(out, "<p>{}</p>", escaped(&line))?;
    }
    let open = answer.to_open.iter();
    let open = open.map(|one| vec![(&one.host).into(), (&one.why).into(), (&one.command).into()]);
    section(
        out,
        "Open first",
        &statement("tasks", std::slice::from_ref(&coverage.day)),
        &["host", "why", "command"],
        &open.collect::<Vec<_>>(),
    )?;
    let problems = answer.problems.iter().map(|one| {
        vec![
            (&one.severity).into(),
            (&one.id).into(),
            count(one.hosts),
            count(one.could_tell),
            number(
                one.share_low,
                format!(
                    "{:.0} to {:.0} %",
                    100.0 * one.share_low,
                    100.0 * one.share_high
                ),
            ),
            number(one.cost_ns, format!("{:.1} s", one.cost_ns / 1e9)),
            (&one.worst_host).into(),
            number(one.worst_share, format!("{:.1} %", 100.0 * one.worst_share)),
            count(one.came),
            count(one.went),
        ]
    });
    section(
        out,
        "Problems",
        &format!(
            "{};\n\
             -- could tell: SELECT host FROM runs WHERE day = '{day}' AND ',' || can_tell || ',' LIKE '%,ID,%'",
            sql("findings")
        ),
        &[
            "severity",
            "cause",
            "hosts",
            "could tell",
            "share of all such hosts",
            "cost",
            "worst host",
            "its share",
            "came",
            "went",
        ],
        &problems.collect::<Vec<_>>(),
    )?;
    let metrics = format!("{};\n{}", sql("vcpus"), sql("paths"));
    let news = answer.news.iter().map(|one| {
        vec![
            (&one.host).into(),
            (&one.metric).into(),
            ratio(one.ratio),
            chance(one.p_value),
            (&one.peers).into(),
        ]
    });
    section(
        out,
        "News: hosts that changed, beyond what their peers did",
        &metrics,
        &[
            "host",
            "metric",
            "times its peers' change",
            "by chance",
            "peers",
        ],
        &news.collect::<Vec<_>>(),
    )?;
    let shifts = answer.shifts.iter().map(|one| {
        vec![
            (&one.peers).into(),
            (&one.metric).into(),
            ratio(one.ratio),
            count(one.ups),
            count(one.hosts),
            chance(one.p_value),
        ]
    });
    section(
        out,
        "Shifts: groups that changed as a whole",
        &metrics,
        &[
            "peers",
            "metric",
            "ratio",
            "more on",
            "of hosts",
            "by chance",
        ],
        &shifts.collect::<Vec<_>>(),
    )?;
    let outliers = answer.outliers.iter().map(|one| {
        vec![
            (&one.host).into(),
            (&one.metric).into(),
            ratio(one.ratio),
            count(one.days as u64),
            (&one.peers).into(),
        ]
    });
    section(
        out,
        "Outliers: hosts unlike their peers on all days",
        &metrics,
        &["host", "metric", "times the peers' middle", "days", "peers"],
        &outliers.collect::<Vec<_>>(),
    )?;
    let shared = answer.shared.iter().map(|one| {
        let of = |with: u64, all: u64| number(with as f64, format!("{with} of {all}"));
        vec![
            (&one.problem).into(),
            (&one.fact).into(),
            (&one.value).into(),
            of(one.sick_with, one.sick),
            of(one.others_with, one.others),
            chance(one.p_value),
        ]
    });
    section(
        out,
        "What hosts with a problem share",
        &format!("{};\n{}", sql("runs"), sql("facts")),
        &[
            "cause",
            "fact",
            "value",
            "hosts with it",
            "others",
            "by chance",
        ],
        &shared.collect::<Vec<_>>(),
    )?;
    writeln!(out, "<script>{SCRIPT}</script></html>")
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(
            escaped("<b>'\"&\u{202e}\u{1b}"),
            "&lt;b&gt;&#39;&quot;&amp;\u{fffd}\u{fffd}"
        );
    }
}
