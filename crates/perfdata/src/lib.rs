//! perfdata
