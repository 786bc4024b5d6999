//! The table of texts that are read, in `docs/input.md`, made of what the readers declare.

use std::fs;

use super::root;

const BEGIN: &str = "<!-- forms -->\n";
const END: &str = "<!-- end of forms -->\n";

fn table() -> String {
    let mut out = "| printed by | known by | what comes of it |\n| --- | --- | --- |\n".to_owned();
    for (kind, forms) in session::input_forms() {
        for form in forms {
            let cells = [form.printed_by, form.recognised_by, form.yields];
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            let [printed_by, known_by, yields] = cells;
            out.push_str(&format!(
                "| {printed_by} | {known_by} | {kind}: {yields} |\n"
            ));
        }
    }
    out
}

#[test]
fn the_table_of_inputs_is_what_readers_declare() {
    let path = root().join("docs/input.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the beginning of the table");
    let (_, after) = rest.split_once(END).expect("the end of the table");
    let wanted = format!("{before}{BEGIN}\n{}\n{END}{after}", table());
    if std::env::var_os("TRAPLINE_WRITE_DOCS").is_some() {
        fs::write(&path, wanted).unwrap();
        return;
    }
    assert!(
        text == wanted,
        "docs/input.md: TRAPLINE_WRITE_DOCS=1 cargo test -p trapline --bins manuals writes it"
    );
}
