//! Which part of the inputs a doubt is about.

/// The part of the inputs that a doubt is about. What is not said is all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DoubtScope {
    /// The input, where a command reads several.
    pub input: Option<String>,
    /// The number of the machine whose recording it is about, of several that are walked together: 0 is the host. Who
    /// knows the machines' inputs names them in its place.
    pub machine: u16,
    /// Threads, such as the vCPUs of a VM; none means all.
    pub threads: Vec<i32>,
    /// CPUs; none means all.
    pub cpus: Vec<u32>,
    /// From when to when, on the recording's clock.
    pub span: Option<(u64, u64)>,
}
