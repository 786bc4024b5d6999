//! What `trapline` asks for.

use std::path::PathBuf;

use serde::Deserialize;

/// A question about a store.
#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    /// Version of the documents that the answer is one of.
    pub(crate) schema: u32,
    /// The store's folder.
    pub(crate) store: PathBuf,
    /// What the store is called in the answer: the folder, or the recordings that it was made of for this question
    /// alone.
    pub(crate) inputs: Vec<String>,
    /// The question.
    pub(crate) question: Question,
    /// How the answer is printed.
    pub(crate) format: AnswerFormat,
    /// Rows of a table for people that are printed at most.
    pub(crate) limit: usize,
    /// Threads that the engine may use.
    pub(crate) threads: usize,
    /// Bytes that it may hold.
    pub(crate) memory: usize,
    /// What names of files begin with that are made of those of many recordings.
    pub(crate) compacted: String,
    /// The tables.
    pub(crate) tables: Vec<TableColumns>,
}

/// What is asked of a store.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Question {
    /// One SELECT.
    Sql(String),
    /// What a fleet's state is.
    Fleet(FleetQuestion),
}

/// What is asked of a fleet.
#[derive(Debug, Deserialize)]
pub(crate) struct FleetQuestion {
    /// The day in question; without it the store's last.
    pub(crate) day: Option<String>,
    /// The first day that it is held against; without it all before.
    pub(crate) since: Option<String>,
    /// The columns of `runs` by which hosts are peers.
    pub(crate) peers: Vec<String>,
    /// Days of the store that are in the future.
    pub(crate) future: Vec<String>,
}

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AnswerFormat {
    /// For people.
    Table,
    /// One document.
    Json,
    /// A line each.
    Csv,
    /// A page, of a fleet alone.
    Html,
}

/// A table of the store.
#[derive(Debug, Deserialize)]
pub(crate) struct TableColumns {
    /// Its name, which its folder has.
    pub(crate) name: String,
    /// Its columns, but for the day, which folders say.
    pub(crate) columns: Vec<TypedColumn>,
}

/// A column of a table.
#[derive(Debug, Deserialize)]
pub(crate) struct TypedColumn {
    /// Its name.
    pub(crate) name: String,
    /// What its values are.
    pub(crate) kind: ColumnKind,
}

/// What values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ColumnKind {
    /// 64 bits with a sign.
    Integer,
    /// Any number.
    Double,
    /// True or false.
    Flag,
    /// UTF-8.
    Text,
}
