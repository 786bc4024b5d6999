//! How much memory a process may still take.

use crate::tree::HostTree;

/// Groups above one that are looked at.
const MAX_DEPTH: usize = 64;

/// Returns how many bytes a process of the tree may take without others losing theirs: what the kernel takes for
/// available (`MemAvailable` of `/proc/meminfo`, `Documentation/filesystems/proc.rst`), or what its control groups
/// leave it, if that is less (`memory.max` and `memory.current`, `Documentation/admin-guide/cgroup-v2.rst`;
/// `memory.limit_in_bytes` and `memory.usage_in_bytes` of the first version). `None` where neither is there.
pub(crate) fn memory(tree: &mut HostTree) -> Option<u64> {
    let meminfo = tree.text("/proc/meminfo").unwrap_or_default();
    let line = (meminfo.lines()).find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let of_host = kib.and_then(|kib| kib.checked_mul(1024));
    let groups = tree.text("/proc/self/cgroup").unwrap_or_default();
    let of_groups = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let is_memory = controllers.split(',').any(|one| one == "memory");
        let (folder, names) = match (controllers.is_empty(), is_memory) {
            (true, _) => ("/sys/fs/cgroup", ["memory.max", "memory.current"]),
            (false, true) => (
                "/sys/fs/cgroup/memory",
                ["memory.limit_in_bytes", "memory.usage_in_bytes"],
            ),
            (false, false) => return None,
        };
        left(tree, folder, path, names)
    });
    let of_groups: Vec<u64> = of_groups.collect();
    of_groups.into_iter().chain(of_host).min()
}

/// Returns the least that a group and those above it leave.
fn left(tree: &mut HostTree, folder: &str, path: &str, [limit, used]: [&str; 2]) -> Option<u64> {
    let mut path = path.trim_matches('/');
    let mut least = None;
    for _ in 0..MAX_DEPTH {
        let mut number = |name: &str| -> Option<u64> {
            let file = match path {
                "" => format!("{folder}/{name}"),
                _ => format!("{folder}/{path}/{name}"),
            };
            tree.text(&file)?.trim().parse().ok()
        };
        if let Some(limit) = number(limit) {
            let left = limit.saturating_sub(number(used).unwrap_or(0));
            least = Some(least.map_or(left, |least: u64| least.min(left)));
        }
        if path.is_empty() {
            break;
        }
        path = path.rsplit_once('/').map_or("", |(above, _)| above);
    }
    least
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_least_of_host_and_groups_is_available() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let available = || memory(&mut HostTree::new(root.path()));
        assert_eq!(available(), None);
        write("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    2048 kB\n");
        assert_eq!(available(), Some(2 << 20));
        write("proc/self/cgroup", "1:cpu:/x\n0::/a.slice/b.scope\n");
        write("sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n");
        assert_eq!(available(), Some(2 << 20));
        write("sys/fs/cgroup/a.slice/memory.max", "1048576\n");
        write("sys/fs/cgroup/a.slice/memory.current", "48576\n");
        assert_eq!(available(), Some(1_000_000));
        write("proc/self/cgroup", "4:memory:/docker/1\n");
        write(
            "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes",
            "4096\n",
        );
        assert_eq!(available(), Some(4096));
    }
}
