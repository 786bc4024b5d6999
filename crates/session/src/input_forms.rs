//! What all readers of texts declare.

use forms::InputForm;

/// Returns the forms of texts that are read, by what they are: traces, tables, definitions, facts, results of
/// benchmarks.
pub fn input_forms() -> Vec<(&'static str, Vec<&'static InputForm>)> {
    vec![
        ("trace", tracetext::FORMS.iter().collect()),
        ("table", perftables::forms()),
        ("definition", domain::FORMS.iter().collect()),
        ("facts", facts::FORMS.iter().collect()),
        ("result", results::FORMS.iter().collect()),
    ]
}
