//! tracedat
