//! What VMs, vCPUs and threads are called. Which VM has which name is `model`'s to say.

/// Returns what a vCPU is called: `vCPU 1`, and where its VM has to be named `web, vCPU 1`.
pub fn vcpu(vm: Option<&str>, vcpu: u32) -> String {
    match vm {
        Some(vm) => format!("{vm}, vCPU {vcpu}"),
        None => format!("vCPU {vcpu}"),
    }
}

/// Returns a name with the thread that has it: `vCPU 1 (thread 1705)`.
pub fn with_thread(name: &str, tid: i32) -> String {
    format!("{name} (thread {tid})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_is_named_where_there_are_several() {
        assert_eq!(vcpu(None, 1), "vCPU 1");
        assert_eq!(vcpu(Some("web"), 1), "web, vCPU 1");
        assert_eq!(with_thread("vCPU 1", 1705), "vCPU 1 (thread 1705)");
    }
}
