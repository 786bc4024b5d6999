//! What is asked of profiles.

/// What stands below the stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProfileBy {
    /// The name of the thread.
    #[default]
    Comm,
    /// The thread itself.
    Thread,
    /// The CPU.
    Cpu,
    /// The VM that the thread is of.
    Vm,
}

/// Which time is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProfileOf {
    /// What threads did on CPUs, by samples.
    #[default]
    OnCpu,
    /// What threads waited for without a CPU, by switches.
    OffCpu,
    /// Both, as time by switches: that on CPUs is shared out by samples.
    Both,
    /// Where guests exited: the instruction pointers of `kvm_exit`. These are no samples.
    Exits,
}

/// What is shown of samples.
#[derive(Debug, Clone, Default)]
pub struct ProfileOptions {
    /// Which time.
    pub of: ProfileOf,
    /// The event, by the recording's name for it, with or without modifiers; else the first that is no tracepoint.
    pub event: Option<String>,
    /// Whether idle CPUs and guests are shown too.
    pub idle: bool,
    /// What stands below the stacks.
    pub by: ProfileBy,
    /// Whether the stack of who woke a thread stands on the stack with which it slept.
    pub wakers: bool,
}

impl ProfileOptions {
    /// Whether samples are asked for.
    pub(super) fn samples(&self) -> bool {
        matches!(self.of, ProfileOf::OnCpu | ProfileOf::Both)
    }

    /// Whether switches are asked for.
    pub(super) fn switches(&self) -> bool {
        matches!(self.of, ProfileOf::OffCpu | ProfileOf::Both)
    }
}
