//! What decides what is private.

/// Decides what stands in place of what is private in a trace.dat.
pub trait TracePrivacyMask {
    /// Masks a record in place, its common fields included.
    fn ring_record(&mut self, record: &mut [u8]);

    /// Returns what stands in place of the saved names of threads: lines of an id and a name.
    fn saved_names(&mut self, text: &[u8]) -> Vec<u8>;

    /// Returns what stands in place of lines of `/proc/kallsyms`. Asked when all records were masked once.
    fn symbols(&mut self, kallsyms: &[u8]) -> Vec<u8>;

    /// Returns what stands in place of the name of an instance or of a guest.
    fn label(&mut self, name: &str) -> String;

    /// Returns what stands in place of the release of a kernel, the version of a recorder, the name of an architecture.
    fn version(&mut self, text: &str) -> String;
}
