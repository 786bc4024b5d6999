//! tracetext
