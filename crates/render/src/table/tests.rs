//! Tables of two columns, and what becomes of them in each form.

use super::*;

struct Row {
    name: &'static str,
    waited: Option<u64>,
}

fn table() -> Table<'static, Row> {
    Table::new()
        .column("name", Unit::Text, |row: &Row| row.name)
        .left("", 6)
        .column("hits", Unit::Count, |row| row.name.len())
        .heading("hits", 5)
        .json_at("sums.hits")
        .only_if(
            |row| row.name != "c",
            |table| {
                table
                    .column("wait_ns", Unit::Nanoseconds, |row| row.waited)
                    .heading("wait", 9)
                    .json_at("sums.wait_ns")
            },
        )
        .column("port", Unit::Address, |_| 0x3f8)
        .column("share", Unit::Share, |_| 1.0)
        .heading("hits%", 7)
        .gap(" ")
}

const ROWS: [Row; 3] = [
    Row {
        name: "a,\x1b",
        waited: Some(1500),
    },
    Row {
        name: "b",
        waited: None,
    },
    Row {
        name: "c",
        waited: Some(1),
    },
];

#[test]
fn one_list_of_columns_makes_all_forms() {
    assert_eq!(
        table().json(&ROWS).to_string(),
        "[{\"name\":\"a,\\u001b\",\"sums\":{\"hits\":3,\"wait_ns\":1500},\"port\":1016,\"share\":1.0},\
         {\"name\":\"b\",\"sums\":{\"hits\":1,\"wait_ns\":null},\"port\":1016,\"share\":1.0},\
         {\"name\":\"c\",\"sums\":{\"hits\":1},\"port\":1016,\"share\":1.0}]"
    );
    assert_eq!(
        table().csv(&ROWS),
        "name,hits,wait_ns,port,share\n\"a,\\x1b\",3,1500,0x3f8,1\nb,1,,0x3f8,1\nc,1,,0x3f8,1\n"
    );
    let layout = Layout {
        width: 80,
        limit: 2,
        nanoseconds: true,
    };
    let table = table();
    let view = table.view(Views::TERMINAL);
    assert_eq!(
        view.text(&ROWS, layout),
        "       hits     wait   hits%\na,\\x1b    3  1.500us   100.0\nb         1        -   100.0\n... and 1 more\n"
    );
}

#[test]
fn columns_never_run_together() {
    let table = Table::new()
        .column("name", Unit::Text, |row: &Row| row.name)
        .left("", 2)
        .column("wide", Unit::Text, |_| "a wide cell")
        .heading("wide", 5)
        .column("next", Unit::Text, |_| "more")
        .left("next", 4)
        .column("last", Unit::Count, |_| 1234)
        .heading("last", 4);
    let layout = Layout {
        width: 80,
        limit: 1,
        nanoseconds: true,
    };
    assert_eq!(
        table.view(Views::TERMINAL).text(&ROWS[1..2], layout),
        "   wide next last\nb a wide cell more 1234\n"
    );
}

#[test]
fn people_see_a_column_where_it_belongs_and_documents_have_it_where_it_was() {
    let table = Table::new()
        .column("max", Unit::Count, |_: &Row| 9)
        .heading("max", 4)
        .after("p50")
        .column("p50", Unit::Count, |_| 5)
        .heading("p50", 4)
        .csv_after("sum")
        .column("sum", Unit::Count, |_| 14)
        .heading("sum", 4)
        .after("");
    assert_eq!(table.view(Views::TERMINAL).head(), " sum p50 max");
    assert_eq!(table.csv(&ROWS[..1]), "max,sum,p50\n9,14,5\n");
    assert_eq!(
        table.json(&ROWS[..1]).to_string(),
        "[{\"max\":9,\"p50\":5,\"sum\":14}]"
    );
}
