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

/// Returns whether a VM's own name is meant by what somebody calls it: the name itself, or KubeVirt's, whose domains
/// libvirt has as `NAMESPACE_NAME` and people call `NAME` or `NAMESPACE/NAME`.
pub fn is_vm_name(own: &str, asked: &str) -> bool {
    if own == asked {
        return true;
    }
    // A namespace has letters, digits and dashes alone (RFC 1123), so the first underscore ends it.
    own.split_once('_').is_some_and(|(space, name)| {
        !asked.is_empty() && (name == asked || asked.split_once('/') == Some((space, name)))
    })
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

    #[test]
    fn a_vm_of_kubevirt_is_called_as_its_users_do() {
        for asked in ["default_web-1", "web-1", "default/web-1"] {
            assert!(is_vm_name("default_web-1", asked), "{asked}");
        }
        for asked in ["", "web", "default", "other/web-1", "default/"] {
            assert!(!is_vm_name("default_web-1", asked), "{asked}");
        }
        assert!(!is_vm_name("web", "w"));
    }
}
