//! What the engine's errors say.

use anyhow::anyhow;
use datafusion::error::DataFusionError;

/// Returns what the engine says of an error, and what to do where a number is too large or a file is damaged.
pub(crate) fn with_advice(error: &DataFusionError) -> anyhow::Error {
    let said = error.strip_backtrace();
    if said.contains("out of range Int64") {
        return anyhow!("{said}; integers have 64 bits: sum(CAST(x AS DOUBLE)) has larger sums");
    }
    if said.contains("Parquet") {
        return anyhow!("{said}; 'trapline fleet --check DIR' names files that are damaged");
    }
    anyhow!("{said}")
}
