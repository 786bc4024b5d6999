//! VMs in the columns of tables.

use model::Vm;

use crate::clean;

/// Width of a column of VMs.
pub(crate) const WIDTH: usize = 8;

/// Returns what stands for a VM in a column: its name where that fits, else its process, else `t` and the thread of its
/// first vCPU, which the lines below a table and `info` list. `label` is what it is called ([`model::vm_names`]).
pub(crate) fn cell(label: &str, pid: Option<i32>) -> String {
    if !label.is_empty() && label.chars().count() <= WIDTH {
        return clean(label);
    }
    if let Some(pid) = pid {
        return pid.to_string();
    }
    let digits = label.trim_end_matches(')');
    let start = digits.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    match &digits[start..] {
        "" => "-".to_owned(),
        tid => format!("t{tid}"),
    }
}

/// Returns the name of a row's VM, from those of [`model::vm_names`], and its process; no name and no process where the
/// row is of none.
pub(crate) fn of_row<'l>(
    at: Option<usize>,
    vms: &[Vm],
    labels: &'l [String],
) -> (&'l str, Option<i32>) {
    let label = at.and_then(|at| labels.get(at));
    let pid = at.and_then(|at| vms.get(at)?.pid);
    (label.map_or("", String::as_str), pid)
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn a_vm_has_a_name_that_fits() {
        for (label, pid, text) in [
            ("web", Some(180), "web"),
            ("qemu-system-x86 (process 180)", Some(180), "180"),
            ("VM of thread 1704", None, "t1704"),
            ("qemu-system-x86 (thread 1704)", None, "t1704"),
            ("a-name-that-is-long", None, "-"),
            ("", None, "-"),
        ] {
            assert_eq!(cell(label, pid), text);
        }
    }
}
