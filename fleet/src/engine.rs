//! The engine: DataFusion, which reads the store's tables and nothing else, and changes nothing.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::context::SQLOptions;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::DFParser;
use datafusion::sql::resolve::resolve_table_references;

use crate::checked_sums::CheckedSums;
use crate::engine_error::with_advice;
use crate::fleet;
use crate::output::{AnswerPrinter, StoreLosses};
use crate::request::{ColumnKind, Question, Request, TableColumns};
use crate::view::{RUNS, StoreView};

/// The column that folders say.
const DAY: &str = "day";

/// Files of a table at most whose footers are read before a question is planned.
const MOST_FOOTERS: usize = 1 << 8;

/// How texts are held: short ones, such as days, stand beside each other and are compared without a look elsewhere.
/// Functions take them as they take plain texts, and dictionaries they do not.
const TEXT: DataType = DataType::Utf8View;

/// Answers a question.
///
/// # Errors
///
/// There is no store, or the question is none that SQL has an answer for.
pub(crate) async fn answer(request: &Request) -> Result<()> {
    let asked = asked(&request.question);
    let known = |one: &&TableColumns| one.name == RUNS || asked.contains(&one.name);
    let tables: Vec<&TableColumns> = request.tables.iter().filter(known).collect();
    let names: Vec<&str> = tables.iter().map(|one| one.name.as_str()).collect();
    let view = StoreView::of(&request.store, &names, &request.compacted)?;
    if view.files == 0 && view.unread.is_empty() {
        bail!(
            "{}: no store of recordings; 'trapline export --as parquet REC... -o DIR' makes one",
            request.store.display()
        );
    }
    let context = context(request, view.files)?;
    for table in tables {
        register(&context, &view, table).with_context(|| format!("table {}", table.name))?;
    }
    let losses = losses(&context).await?;
    match &request.question {
        Question::Sql(sql) => select(request, sql, &context, &view, losses).await?,
        Question::Fleet(question) => {
            fleet::answer(request, question, &context, &view, losses).await?;
        }
    }
    if let Some(note) = slow_because(view.files, &request.store) {
        // It is said beside the answer, which is whole without it.
        let _ = writeln!(io::stderr(), "{note}");
    }
    Ok(())
}

/// Returns the names of tables that are asked: others are not looked at.
fn asked(question: &Question) -> Vec<String> {
    match question {
        Question::Fleet(_) => fleet::tables().map(str::to_owned).collect(),
        Question::Sql(sql) => {
            let statements = DFParser::parse_sql(sql).into_iter().flatten();
            let tables = statements.flat_map(|statement| {
                let tables = resolve_table_references(&statement, true);
                tables.map(|(tables, _)| tables).unwrap_or_default()
            });
            // What cannot be parsed asks nothing, and is an error when it is planned.
            tables.map(|table| table.table().to_owned()).collect()
        }
    }
}

/// Returns why a store takes longer than it needs to, if it does: opening a file costs more than what most have.
fn slow_because(files: usize, store: &Path) -> Option<String> {
    (files > MOST_FOOTERS).then(|| {
        format!(
            "note: each table has {files} files; 'trapline fleet --compact {}' makes one of each day, which are read \
             many times as fast",
            store.display()
        )
    })
}

/// Answers a SELECT.
async fn select(
    request: &Request,
    sql: &str,
    context: &SessionContext,
    view: &StoreView,
    losses: StoreLosses,
) -> Result<()> {
    let read_only = SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false);
    let frame = context
        .sql_with_options(sql, read_only)
        .await
        .map_err(|error| with_advice(&error))?;
    let printer = AnswerPrinter::new(request, view, losses, frame.schema().as_arrow());
    let stream = frame
        .execute_stream()
        .await
        .map_err(|error| with_advice(&error))?;
    printer.print(stream).await
}

/// Returns what the recordings lost, whatever is asked of them.
pub(crate) async fn losses(context: &SessionContext) -> Result<StoreLosses> {
    let sql = "SELECT coalesce(sum(CAST(lost_events AS DOUBLE)), 0.0), \
               coalesce(max(CASE WHEN truncated THEN 1 ELSE 0 END), 0), count(*) FROM runs";
    let batches = context.sql(sql).await?.collect().await?;
    let batch = batches.first().filter(|batch| batch.num_rows() > 0);
    let number = |at: usize| {
        let column = batch?.columns().get(at)?.as_primitive_opt::<Int64Type>()?;
        Some(column.value(0))
    };
    let lost = batch.and_then(|batch| batch.columns().first()?.as_primitive_opt::<Float64Type>());
    Ok(StoreLosses {
        // More than 64 bits have are as many as they can say.
        lost_events: lost.map_or(0, |lost| lost.value(0) as i64),
        truncated: number(1).unwrap_or(0) > 0,
        recordings: number(2).unwrap_or(0),
    })
}

pub(crate) fn context(request: &Request, files: usize) -> Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_target_partitions(request.threads.max(1))
        .with_information_schema(false);
    // What the footers say of each column decides which side of a join is held in memory. A store that was not
    // compacted has many and small files, of which reading all footers first costs more than it saves.
    config.options_mut().execution.collect_statistics = files <= MOST_FOOTERS;
    config.options_mut().execution.parquet.pushdown_filters = true;
    // Who asks for the largest wants numbers. DuckDB and ClickHouse do so too.
    config.options_mut().sql_parser.default_null_ordering = "nulls_last".to_owned();
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_limit(request.memory, 1.0)
        .build_arc()?;
    let context = SessionContext::new_with_config_rt(config, runtime);
    context.add_analyzer_rule(Arc::new(CheckedSums));
    Ok(context)
}

/// Makes a table known, also where the store has no file of it: it has no rows then.
pub(crate) fn register(
    context: &SessionContext,
    view: &StoreView,
    table: &TableColumns,
) -> Result<()> {
    let fields = table.columns.iter().map(|column| {
        let kind = match column.kind {
            ColumnKind::Integer => DataType::Int64,
            ColumnKind::Double => DataType::Float64,
            ColumnKind::Flag => DataType::Boolean,
            ColumnKind::Text => TEXT,
        };
        Field::new(&column.name, kind, true)
    });
    let fields: Vec<Field> = fields.collect();
    let folder = view.table(&table.name);
    if !folder.is_dir() {
        let fields = fields.into_iter();
        let all = fields.chain([Field::new(DAY, TEXT, true)]);
        let schema = Schema::new(all.collect::<Vec<_>>());
        let empty = datafusion::datasource::MemTable::try_new(Arc::new(schema), vec![vec![]])?;
        context.register_table(table.name.as_str(), Arc::new(empty))?;
        return Ok(());
    }
    let options = ListingOptions::new(Arc::new(ParquetFormat::default()))
        .with_file_extension(".parquet")
        .with_table_partition_cols(vec![(DAY.to_owned(), TEXT)]);
    let url = ListingTableUrl::parse(format!("{}/", folder.display()))?;
    // Columns that were added since a file was written are null there.
    let config = ListingTableConfig::new(url)
        .with_listing_options(options)
        .with_schema(Arc::new(Schema::new(fields)));
    context.register_table(
        table.name.as_str(),
        Arc::new(ListingTable::try_new(config)?),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_of_many_files_are_said_to_be_slow() {
        assert_eq!(slow_because(MOST_FOOTERS, Path::new("fleet")), None);
        let note = slow_because(3500, Path::new("fleet")).expect("a note");
        assert!(note.contains("3500 files"), "{note}");
        assert!(note.contains("'trapline fleet --compact fleet'"), "{note}");
    }
}
