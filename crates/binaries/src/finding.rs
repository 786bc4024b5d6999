//! Where the file of a build id may be.
//!
//! Source: `tools/perf/util/build-id.c` (`build_id_cache__linkname`, `dso__build_id_filename`), `tools/perf/util/dso.c`
//! (`dso__read_binary_type_filename`), GDB's manual ("Debugging Information in Separate Files"),
//! `debuginfod_find_debuginfo(3)`.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::debuginfod_process::DebuginfodProcess;

/// How `debuginfod-find` is asked.
#[derive(Debug, Clone)]
pub enum DebuginfodAccess {
    /// A program called as it is, and how long that may take for one file.
    Program(PathBuf, Duration),
    /// A process that runs the program.
    Process(Arc<DebuginfodProcess>),
}

/// Where files are looked for, and what is wanted of them. The default looks nowhere.
#[derive(Debug, Clone, Default)]
pub struct SearchOptions {
    /// A folder that has the recorded machine's files below it. Whoever names it vouches for them: files of which the
    /// recording has no build id are taken from here alone.
    pub symfs: Option<PathBuf>,
    /// The root of this machine's file system (`/`): its running kernel, and the files of its kernels.
    pub root: Option<PathBuf>,
    /// Whether files are looked for where the recording saw them.
    pub own_paths: bool,
    /// Folders as perf's cache of build ids (`~/.debug`).
    pub buildid_dirs: Vec<PathBuf>,
    /// Folders of debug files (`/usr/lib/debug`).
    pub debug_dirs: Vec<PathBuf>,
    /// Cache of debuginfod's clients (`~/.cache/debuginfod_client`).
    pub debuginfod_cache: Option<PathBuf>,
    /// How files are got from debuginfod's servers.
    pub debuginfod: Option<DebuginfodAccess>,
    /// A folder with files of just-in-time compilers, `perf-PID.map` (`/tmp`).
    pub perf_maps: Option<PathBuf>,
    /// Whether inlined functions are reported.
    pub inlines: bool,
}

/// The kernel's name in caches of build ids.
const KERNEL: &[u8] = b"[kernel.kallsyms]";

/// What of a file is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilePart {
    /// The file as it was run.
    Binary,
    /// What was taken out of it.
    Debug,
}

/// Returns a build id as it is written.
pub(crate) fn hex(build_id: &[u8]) -> String {
    build_id.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns a path of the recording below a folder; `None` where it leads out of it.
pub(crate) fn below(folder: &Path, path: &[u8]) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path));
    let mut found = folder.to_owned();
    for part in path.components() {
        match part {
            Component::Normal(part) => found.push(part),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(found)
}

/// Returns a path without what the kernel puts behind those of files that are gone.
pub(crate) fn living(path: &[u8]) -> &[u8] {
    path.strip_suffix(b" (deleted)").unwrap_or(path)
}

impl SearchOptions {
    /// Returns whether kernels are looked for nowhere.
    pub fn has_no_kernels(&self) -> bool {
        let folders = self.buildid_dirs.iter().chain(&self.debug_dirs);
        let mut places = folders
            .chain(&self.symfs)
            .chain(&self.root)
            .chain(&self.debuginfod_cache);
        places.next().is_none()
    }

    /// Returns the places where a file may be, likely ones first.
    pub(crate) fn places(&self, kind: FilePart, path: &[u8], build_id: &[u8]) -> Vec<PathBuf> {
        let mut places = Vec::new();
        let path = living(path);
        let is_path = path.starts_with(b"/") && !path.starts_with(b"//");
        let id = hex(build_id);
        let Some((first, rest)) = id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())
        else {
            return places;
        };
        let in_debug = Path::new(".build-id")
            .join(first)
            .join(format!("{rest}.debug"));
        if let Some(symfs) = &self.symfs {
            match kind {
                FilePart::Binary if is_path => places.extend(below(symfs, path)),
                FilePart::Binary => {}
                FilePart::Debug => places.push(symfs.join("usr/lib/debug").join(&in_debug)),
            }
        }
        for folder in &self.buildid_dirs {
            let linked = folder.join(".build-id").join(first).join(rest);
            if kind == FilePart::Debug {
                places.push(linked.join("debug"));
                continue;
            }
            places.extend([linked.join("elf"), linked.join("vdso")]);
            if let Some(cached) = below(folder, path) {
                let cached = cached.join(&id);
                places.extend([cached.join("elf"), cached.join("vdso")]);
            }
            // Before kernel 4.6 perf linked the file itself.
            places.push(linked);
        }
        if kind == FilePart::Debug {
            places.extend(self.debug_dirs.iter().map(|folder| folder.join(&in_debug)));
        } else if self.own_paths && is_path {
            places.push(PathBuf::from(OsStr::from_bytes(path)));
        }
        if let Some(cache) = &self.debuginfod_cache {
            places.push(cache.join(&id).join(match kind {
                FilePart::Binary => "executable",
                FilePart::Debug => "debuginfo",
            }));
        }
        places
    }

    /// Returns the places where the file of a kernel may be. `release` is the kernel's (`uname -r`).
    pub(crate) fn kernel_images(&self, release: Option<&str>, build_id: &[u8]) -> Vec<PathBuf> {
        let mut places = self.of_cache(build_id, "vmlinux");
        places.extend(self.places(FilePart::Binary, KERNEL, build_id));
        places.extend(self.places(FilePart::Debug, KERNEL, build_id));
        // It is a name: one with a folder would lead anywhere.
        let is_name = |release: &&str| {
            let mut parts = Path::new(release).components();
            matches!(
                (parts.next(), parts.next()),
                (Some(Component::Normal(_)), None)
            )
        };
        let Some(release) = release.filter(is_name) else {
            return places;
        };
        for root in self.symfs.iter().chain(&self.root) {
            places.push(root.join(format!("boot/vmlinux-{release}")));
            places.push(root.join(format!("lib/modules/{release}/build/vmlinux")));
        }
        let symfs = self.symfs.iter().map(|symfs| symfs.join("usr/lib/debug"));
        for debug in symfs.chain(self.debug_dirs.iter().cloned()) {
            places.push(debug.join(format!("boot/vmlinux-{release}")));
            places.push(debug.join(format!("boot/vmlinux-{release}.debug")));
            places.push(debug.join(format!("lib/modules/{release}/vmlinux")));
        }
        places
    }

    /// Returns the places where perf keeps a copy of a kernel's `/proc/kallsyms`.
    pub(crate) fn kernel_copies(&self, build_id: &[u8]) -> Vec<PathBuf> {
        self.of_cache(build_id, "kallsyms")
    }

    /// Returns the places of a file of a kernel in caches as perf's.
    fn of_cache(&self, build_id: &[u8], name: &str) -> Vec<PathBuf> {
        let id = hex(build_id);
        let Some((first, rest)) = id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())
        else {
            return Vec::new();
        };
        let folders = self.buildid_dirs.iter();
        let places = folders.flat_map(|folder| {
            let linked = folder.join(".build-id").join(first).join(rest);
            let own = below(folder, KERNEL).map(|own| own.join(&id));
            [Some(linked), own]
        });
        places.flatten().map(|place| place.join(name)).collect()
    }

    /// Returns the places where the debug file may be that another file names. `binary` is where that one was found.
    pub(crate) fn linked(&self, binary: &Path, path: &[u8], link: &[u8]) -> Vec<PathBuf> {
        let link = Path::new(OsStr::from_bytes(link));
        // It is a name. One with a folder would lead anywhere.
        let mut parts = link.components();
        let (Some(Component::Normal(name)), None) = (parts.next(), parts.next()) else {
            return Vec::new();
        };
        let mut places = Vec::new();
        if let Some(folder) = binary.parent() {
            places.extend([folder.join(name), folder.join(".debug").join(name)]);
        }
        let folder = Path::new(OsStr::from_bytes(living(path))).parent();
        let folder = folder.map(|folder| folder.as_os_str().as_bytes());
        let symfs = self.symfs.iter().map(|symfs| symfs.join("usr/lib/debug"));
        for debug in self.debug_dirs.iter().cloned().chain(symfs) {
            let below = folder.and_then(|folder| below(&debug, folder));
            places.extend(below.map(|below| below.join(name)));
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(places: Vec<PathBuf>) -> Vec<String> {
        places.iter().map(|p| p.display().to_string()).collect()
    }

    #[test]
    fn files_are_looked_for_where_tools_put_them() {
        let options = SearchOptions {
            symfs: Some("/s".into()),
            own_paths: true,
            buildid_dirs: vec!["/h/.debug".into()],
            debug_dirs: vec!["/usr/lib/debug".into()],
            debuginfod_cache: Some("/c".into()),
            ..SearchOptions::default()
        };
        let id = [0xab, 0xcd, 0xef];
        let binary = texts(options.places(FilePart::Binary, b"/usr/bin/x (deleted)", &id));
        let expected = [
            "/s/usr/bin/x",
            "/h/.debug/.build-id/ab/cdef/elf",
            "/h/.debug/.build-id/ab/cdef/vdso",
            "/h/.debug/usr/bin/x/abcdef/elf",
            "/h/.debug/usr/bin/x/abcdef/vdso",
            "/h/.debug/.build-id/ab/cdef",
            "/usr/bin/x",
            "/c/abcdef/executable",
        ];
        assert_eq!(binary, expected);
        let debug = texts(options.places(FilePart::Debug, b"/usr/bin/x", &id));
        let expected = [
            "/s/usr/lib/debug/.build-id/ab/cdef.debug",
            "/h/.debug/.build-id/ab/cdef/debug",
            "/usr/lib/debug/.build-id/ab/cdef.debug",
            "/c/abcdef/debuginfo",
        ];
        assert_eq!(debug, expected);
        let linked = options.linked(Path::new("/s/usr/bin/x"), b"/usr/bin/x", b"x.debug");
        let expected = [
            "/s/usr/bin/x.debug",
            "/s/usr/bin/.debug/x.debug",
            "/usr/lib/debug/usr/bin/x.debug",
            "/s/usr/lib/debug/usr/bin/x.debug",
        ];
        assert_eq!(texts(linked), expected);
    }

    #[test]
    fn paths_do_not_lead_out_of_a_folder() {
        assert_eq!(below(Path::new("/s"), b"/a/../../b"), None);
        assert_eq!(below(Path::new("/s"), b"/a/./b"), Some("/s/a/b".into()));
        let options = SearchOptions::default();
        for link in [&b"../x"[..], b"/x", b"", b".."] {
            assert!(options.linked(Path::new("/a"), b"/a", link).is_empty());
        }
        assert!(options.places(FilePart::Binary, b"/a", &[]).is_empty());
    }
}
