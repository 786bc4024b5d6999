//! Which files count, and where they are found.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use binaries::{Binaries, DebuginfodAccess, DebuginfodProcess, MissingReason, SearchOptions};

use crate::common::{Readelf, compile, have, output};

const C: &str = "
static __attribute__((always_inline)) inline int inner(int a) { return a * a + 1; }
__attribute__((noinline)) int outer(int a) { volatile int b = inner(a); return b; }
int main(int argc, char **argv) { (void)argv; return outer(argc); }
";

/// A program, without symbols, and the file that has them.
struct Program {
    folder: tempfile::TempDir,
    whole: PathBuf,
    stripped: PathBuf,
    debug: PathBuf,
    id: Vec<u8>,
    /// Where `outer` is in the file.
    offset: u64,
}

const TOOLS: [&str; 4] = ["gcc", "readelf", "nm", "objcopy"];

fn program() -> Program {
    let folder = tempfile::tempdir().unwrap();
    let args = ["-O2", "-g", "-Wl,--build-id"];
    let whole = compile(folder.path(), "gcc", ("prog.c", C), &args);
    let [stripped, debug] = ["stripped", "prog.debug"].map(|name| folder.path().join(name));
    let text = |path: &Path| path.display().to_string();
    output(
        "objcopy",
        &["--only-keep-debug", &text(&whole), &text(&debug)],
        "",
    );
    let link = format!("--add-gnu-debuglink={}", text(&debug));
    output(
        "objcopy",
        &["--strip-all", &link, &text(&whole), &text(&stripped)],
        "",
    );
    let elf = Readelf::of(&whole);
    let symbols = output("nm", &[&text(&whole)], "");
    let line = symbols
        .lines()
        .find(|line| line.ends_with(" outer"))
        .unwrap();
    let address = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    Program {
        offset: elf.offset(address).unwrap(),
        id: elf.build_id.unwrap(),
        folder,
        whole,
        stripped,
        debug,
    }
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Program {
    /// Copies a file to a place below a new folder, and returns the folder.
    fn at(&self, folder: &str, copies: &[(&Path, &str)]) -> PathBuf {
        let folder = self.folder.path().join(folder);
        for (file, place) in copies {
            let place = folder.join(place);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::copy(file, place).unwrap();
        }
        folder
    }

    fn ask(
        &self,
        options: &SearchOptions,
        path: &str,
        id: Option<&[u8]>,
    ) -> Result<Vec<String>, MissingReason> {
        Binaries::new(options.clone()).names(path.as_bytes(), id, self.offset)
    }

    fn linked(&self, name: &str) -> String {
        let id = hex(&self.id);
        format!(".build-id/{}/{}{name}", &id[..2], &id[2..])
    }
}

fn names(names: &[&str]) -> Result<Vec<String>, MissingReason> {
    Ok(names.iter().map(|name| (*name).to_owned()).collect())
}

#[test]
fn a_file_counts_only_with_its_build_id() {
    if !have(&TOOLS) {
        return;
    }
    let program = program();
    let path = program.whole.display().to_string();
    let own = SearchOptions {
        own_paths: true,
        ..SearchOptions::default()
    };
    assert_eq!(
        program.ask(&own, &path, Some(&program.id)),
        names(&["outer"])
    );
    let gone = format!("{path} (deleted)");
    assert_eq!(
        program.ask(&own, &gone, Some(&program.id)),
        names(&["outer"])
    );
    let mut other = program.id.clone();
    other[3] ^= 1;
    assert_eq!(
        program.ask(&own, &path, Some(&other)),
        Err(MissingReason::OtherBuildId)
    );
    // A part of an id is another id, unless zeros fill up the 20 bytes of old recordings.
    assert_eq!(
        program.ask(&own, &path, Some(&program.id[..8])),
        Err(MissingReason::OtherBuildId)
    );
    assert_eq!(
        program.ask(&own, &path, None),
        Err(MissingReason::NoBuildId)
    );
    assert_eq!(
        program.ask(&own, &path, Some(&[0; 20])),
        Err(MissingReason::NoBuildId)
    );
    assert_eq!(
        program.ask(&own, "/nowhere", Some(&program.id)),
        Err(MissingReason::NoFile)
    );
    // A symfs vouches for files without a build id, and for no others.
    let symfs = program.at("symfs", &[(&program.whole, "usr/bin/prog")]);
    let options = SearchOptions {
        symfs: Some(symfs),
        inlines: true,
        ..SearchOptions::default()
    };
    let found = names(&["inner", "outer"]);
    assert_eq!(program.ask(&options, "/usr/bin/prog", None), found);
    assert_eq!(
        program.ask(&options, "/usr/bin/prog", Some(&program.id)),
        found
    );
    assert_eq!(
        program.ask(&options, "/usr/bin/prog", Some(&other)),
        Err(MissingReason::OtherBuildId)
    );
    for path in ["/usr/bin/../bin/prog", "//anon", "[heap]"] {
        assert_eq!(
            program.ask(&options, path, None),
            Err(MissingReason::NoBuildId),
            "{path}"
        );
    }
    // A place that is in no part of the program.
    let mut binaries = Binaries::new(options);
    let nowhere = binaries.names(b"/usr/bin/prog", None, 1 << 40);
    assert_eq!(nowhere, Err(MissingReason::NoSymbol));
}

#[test]
fn files_are_found_where_tools_put_them() {
    if !have(&TOOLS) {
        return;
    }
    let program = program();
    let inlined = names(&["inner", "outer"]);
    let id = Some(&program.id[..]);
    let cached = |place: &str| SearchOptions {
        buildid_dirs: vec![program.at(place, &[(&program.whole, place)])],
        inlines: true,
        ..SearchOptions::default()
    };
    assert_eq!(
        program.ask(&cached(&program.linked("/elf")), "/gone", id),
        inlined
    );
    let by_path = format!("usr/bin/prog/{}/elf", hex(&program.id));
    assert_eq!(program.ask(&cached(&by_path), "/usr/bin/prog", id), inlined);

    let stripped = program.at("stripped-symfs", &[(&program.stripped, "bin/prog")]);
    let with_debug = |debug: PathBuf| SearchOptions {
        symfs: Some(stripped.clone()),
        debug_dirs: vec![debug],
        inlines: true,
        ..SearchOptions::default()
    };
    let nothing = with_debug("/nowhere".into());
    assert_eq!(
        program.ask(&nothing, "/bin/prog", id),
        Err(MissingReason::NoSymbol)
    );
    let by_id = program.linked(".debug");
    let by_id = program.at("debug", &[(&program.debug, &by_id)]);
    assert_eq!(
        program.ask(&with_debug(by_id.clone()), "/bin/prog", id),
        inlined
    );
    let by_link = program.at("linked", &[(&program.debug, "bin/prog.debug")]);
    assert_eq!(
        program.ask(&with_debug(by_link.clone()), "/bin/prog", id),
        inlined
    );
    assert_eq!(
        program.ask(&with_debug(by_link.clone()), "/bin/prog", None),
        inlined
    );
    // One whose bytes are others is not what the link means.
    let mut bytes = fs::read(&program.debug).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(by_link.join("bin/prog.debug"), bytes).unwrap();
    assert_eq!(
        program.ask(&with_debug(by_link), "/bin/prog", id),
        Err(MissingReason::NoSymbol)
    );
    // A debug file alone has symbols, and does not tell where in the file code is.
    let alone = SearchOptions {
        symfs: None,
        ..with_debug(by_id)
    };
    assert_eq!(
        program.ask(&alone, "/bin/prog", id),
        Err(MissingReason::NoLayout)
    );
    let beside = program.at(
        "beside",
        &[
            (&program.stripped, "prog"),
            (&program.debug, ".debug/prog.debug"),
        ],
    );
    let own = SearchOptions {
        own_paths: true,
        ..SearchOptions::default()
    };
    let path = beside.join("prog").display().to_string();
    assert_eq!(program.ask(&own, &path, id), names(&["outer"]));
}

/// Returns what looks nowhere but with debuginfod.
fn asked(access: DebuginfodAccess) -> SearchOptions {
    SearchOptions {
        debuginfod: Some(access),
        inlines: true,
        ..SearchOptions::default()
    }
}

#[test]
fn debuginfod_is_asked_when_the_caller_says_so() {
    if !have(&TOOLS) {
        return;
    }
    let program = program();
    let id = hex(&program.id);
    let cache = program.at(
        "cache",
        &[
            (&program.stripped, &format!("{id}/executable")),
            (&program.debug, &format!("{id}/debuginfo")),
        ],
    );
    let cached = SearchOptions {
        debuginfod_cache: Some(cache.clone()),
        inlines: true,
        ..SearchOptions::default()
    };
    let inlined = names(&["inner", "outer"]);
    assert_eq!(program.ask(&cached, "/gone", Some(&program.id)), inlined);
    let script = |name: &str, text: &str| {
        let path = program.folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        asked(DebuginfodAccess::Program(path, Duration::from_millis(500)))
    };
    let finds = script("finds", &format!("echo {}/$2/$1", cache.display()));
    assert_eq!(program.ask(&finds, "/gone", Some(&program.id)), inlined);
    let other = [1; 20];
    assert_eq!(
        program.ask(&finds, "/gone", Some(&other)),
        Err(MissingReason::NoFile)
    );
    for bad in ["exit 1", "echo /nowhere", "sleep 60 &", "exec sleep 60"] {
        let options = script("bad", bad);
        assert_eq!(
            program.ask(&options, "/gone", Some(&program.id)),
            Err(MissingReason::NoFile),
            "{bad}"
        );
    }
    // A process that asks in this one's place.
    let process = |text: &str| {
        let process = DebuginfodProcess::start(Command::new("sh").args(["-c", text]));
        asked(DebuginfodAccess::Process(Arc::new(process.expect("sh"))))
    };
    let answers = format!(
        "while read kind id; do echo {}/$id/$kind; done",
        cache.display()
    );
    assert_eq!(
        program.ask(&process(&answers), "/gone", Some(&program.id)),
        inlined
    );
    for bad in [
        "exit",
        "read line; printf /",
        "while read line; do echo; done",
    ] {
        assert_eq!(
            program.ask(&process(bad), "/gone", Some(&program.id)),
            Err(MissingReason::NoFile),
            "{bad}"
        );
    }
}

#[test]
fn files_of_just_in_time_compilers_are_read_from_their_folder_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("perf-77.map"),
        "7f0000 20 py::main:/a.py\n",
    )
    .unwrap();
    let mut binaries = Binaries::new(SearchOptions {
        perf_maps: Some(folder.path().to_owned()),
        ..SearchOptions::default()
    });
    let path = b"/tmp/perf-77.map";
    assert_eq!(
        binaries.names(path, None, 0x7f_001f),
        names(&["py::main:/a.py"])
    );
    assert_eq!(
        binaries.names(path, None, 0x7f_0020),
        Err(MissingReason::NoSymbol)
    );
    assert_eq!(
        binaries.names(b"/tmp/perf-78.map", None, 0x7f_0000),
        Err(MissingReason::NoFile)
    );
    let mut nowhere = Binaries::new(SearchOptions::default());
    assert_eq!(
        nowhere.names(path, None, 0x7f_0000),
        Err(MissingReason::NoFile)
    );
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    if !have(&["mkfifo"]) {
        return;
    }
    output("mkfifo", &[&pipe.display().to_string()], "");
    let mut binaries = Binaries::new(SearchOptions {
        own_paths: true,
        ..SearchOptions::default()
    });
    let id = [7; 20];
    for path in [
        pipe.as_os_str().as_bytes(),
        b"/dev/zero",
        b"/",
        b"/proc/self/mem",
    ] {
        let found = binaries.names(path, Some(&id), 0);
        assert!(
            matches!(found, Err(MissingReason::NoFile | MissingReason::Damaged)),
            "{found:?}"
        );
    }
}
