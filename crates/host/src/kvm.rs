//! KVM and vhost: parameters of their modules, and what KVM counts.

use std::collections::BTreeMap;

use facts::Host;

use crate::tree::HostTree;

/// The modules that are looked at, of those that are there.
const MODULES: [&str; 5] = ["kvm", "kvm_intel", "kvm_amd", "vhost", "vhost_net"];
/// Most names of parameters and counters.
const MAX_NAMES: usize = 1024;

/// Reads all of it.
pub(crate) fn read(tree: &mut HostTree, host: &mut Host) {
    tree.expect("/sys/module/kvm");
    for module in MODULES {
        let folder = format!("/sys/module/{module}");
        if !tree.is_folder(&folder) {
            continue;
        }
        let mut parameters = BTreeMap::new();
        let folder = format!("{folder}/parameters");
        for name in tree.names(&folder).into_iter().take(MAX_NAMES) {
            let path = format!("{folder}/{name}");
            if tree.is_readable(&path)
                && let Some(value) = tree.line(&path)
            {
                parameters.insert(name, value);
            }
        }
        host.modules.insert(module.to_owned(), parameters);
    }
    host.kvm_debug = debug(tree);
}

/// Reads KVM's counters. The files of the folder itself are sums over all VMs (`kvm_init_debug` of
/// `virt/kvm/kvm_main.c`); those of single VMs stand in folders below it, and are left alone.
fn debug(tree: &mut HostTree) -> BTreeMap<String, u64> {
    const DEBUG: &str = "/sys/kernel/debug/kvm";
    let mut counters = BTreeMap::new();
    if !tree.is_folder(DEBUG) {
        tree.expect(DEBUG);
    }
    for name in tree.names(DEBUG).into_iter().take(MAX_NAMES) {
        let path = format!("{DEBUG}/{name}");
        // Histograms are lists (`KVM_STATS_TYPE_LOG_HIST` of `include/uapi/linux/kvm.h`).
        if name.ends_with("_hist") {
            continue;
        }
        if tree.is_readable(&path)
            && let Some(value) = tree.number(&path)
        {
            counters.insert(name, value);
        }
    }
    counters
}
