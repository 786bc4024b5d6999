/*!
The report as one HTML file, from the same tables as the terminal's text and JSON.

It works from a file, loads nothing, and shows names of a recording as text, whatever is in them.
*/
#![forbid(unsafe_code)]

mod page;
pub mod timeline_data;

pub use page::page;
