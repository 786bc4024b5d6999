//! What the engine's errors say.

use anyhow::anyhow;
use datafusion::error::DataFusionError;

/// Returns what the engine says of an error, and what to do where a number is too large or a file is damaged.
pub(crate) fn with_advice(error: &DataFusionError) -> anyhow::Error {
    // An error is one line.
    let said = error.strip_backtrace().replace('\n', " ");
    if said.contains("out of range Int64") {
        return anyhow!("{said}; integers have 64 bits: sum(CAST(x AS DOUBLE)) has larger sums");
    }
    if said.contains("Parquet") {
        return anyhow!("{said}; 'trapline fleet --check DIR' names files that are damaged");
    }
    anyhow!("{said}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line() {
        let error = DataFusionError::Plan("No field named x.\nValid fields are y.".to_owned());
        let said = with_advice(&error).to_string();
        assert!(
            said.ends_with("No field named x. Valid fields are y."),
            "{said}"
        );
    }
}
