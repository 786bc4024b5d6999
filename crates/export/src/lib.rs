/*!
Recordings as files of other tools: Perfetto's traces, spreadsheets, tickets.
*/
#![forbid(unsafe_code)]
