/*!
What is kept of many recordings: Parquet files by table and day.

A store is a folder. `TABLE/day=YYYY-MM-DD/HOST-RUN.parquet` has the rows of one table of one recording: the day is that
on which the recording began (UTC), the run is a number that the recording's content gives ([`RunId`]), so that the same
recording written again takes its own place. Every engine that reads Hive partitions reads such folders.

Files of a recording are written beside their places under names that end in `.tmp`, brought to the disk and renamed,
those of the table `runs` last: a recording that has no row there is not in the store, wherever the writer was stopped
([`RunWriter`]).

Types are 64-bit integers, doubles, flags and UTF-8, all of which may be null; what the columns are is said by
[`render::store::StoreTable`] alone. Names that somebody gave can be masked while they are written
([`mask::NameMask`]); what is written with one key and what is written with another, or with none, does not get into
one store.
*/
#![forbid(unsafe_code)]

mod check;
mod column_values;
mod compaction;
mod error;
mod footer;
mod host_names;
mod lock;
mod place;
mod run_id;
mod screen_folder;
mod store_days;
mod table_file;
mod writer;

pub use check::{StoreCheck, StoreProblem, check};
pub use compaction::{CompactedDay, compact, forget_detail};
pub use error::StoreError;
pub use footer::{SCHEMA_VERSION, StoreFooter};
pub use place::{COMPACTED, StorePlace, day_of};
pub use run_id::RunId;
pub use screen_folder::refuse_screen;
pub use store_days::StoreDays;
pub use table_file::TableFile;
pub use writer::RunWriter;
