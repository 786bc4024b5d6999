//! Names of the kernel's functions where the recording has none: by the kernel's build id, of a machine made of files.

use std::path::Path;

use fixtures::perf_data::{self, WrittenKernel};
use session::{PictureOptions, SearchOptions, Session, SessionOptions};

/// Where the kernel and a module were when they were recorded.
const TEXT: u64 = 0xffff_ffff_9a00_0000;
const KVM: u64 = 0xffff_ffff_c0a0_0000;
/// Where the kernel is in its file, and after another boot.
const LINKED: u64 = 0xffff_ffff_8100_0000;
const ID: [u8; 20] = [0xab; 20];
const OTHER: [u8; 20] = [0xcd; 20];
const MODULE_ID: [u8; 20] = [0x11; 20];

fn id_text(id: [u8; 20]) -> (String, String) {
    let text = id.map(|byte| format!("{byte:02x}")).concat();
    (text[..2].to_owned(), text[2..].to_owned())
}

fn write(root: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
    std::fs::write(path, content).expect("it is written");
}

fn note(id: [u8; 20]) -> Vec<u8> {
    let mut out = [4u32, 20, 3].map(u32::to_le_bytes).concat();
    out.extend(b"GNU\0");
    out.extend(id);
    out
}

/// A running kernel with a build id, whose code begins at `text`, with kvm at `kvm`.
fn running(root: &Path, id: [u8; 20], text: u64, kvm: u64) {
    write(root, "sys/kernel/notes", note(id));
    let symbols = format!(
        "{text:016x} T _text\n{text:016x} T _stext\n{:016x} T schedule\n{:016x} T _etext\n{:016x} D _edata\n\
         {:016x} t kvm_vcpu_block\t[kvm]\n{:016x} d kvm_data\t[kvm]\n{:016x} t other\t[other]\n",
        text + 0x1000,
        text + 0x8000,
        text + 0x9000,
        kvm + 0x100,
        kvm + 0x200,
        kvm + 0x10_0000,
    );
    write(root, "proc/kallsyms", symbols);
    let modules = format!(
        "kvm 8192 0 - Live 0x{kvm:016x}\nother 4096 0 - Live 0x{:016x}\n",
        kvm + 0x10_0000
    );
    write(root, "proc/modules", modules);
}

fn recorded() -> WrittenKernel {
    WrittenKernel {
        maps: vec![
            (TEXT, 0x9000, TEXT, "[kernel.kallsyms]_text".to_owned()),
            (KVM, 8192, 0, "[kvm]".to_owned()),
        ],
        build_ids: vec![("[kernel.kallsyms]".to_owned(), ID)],
        release: "6.1.0-test".to_owned(),
    }
}

const SCHEDULE: u64 = TEXT + 0x1020;
const BLOCK: u64 = KVM + 0x140;

/// What names are found with these places: of a function of the kernel, and of one of a module.
fn names(kernel: &WrittenKernel, options: &SearchOptions) -> [Option<String>; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let path = recording(folder.path(), kernel);
    let session = Session::open(SessionOptions {
        kernels: options.clone(),
        ..SessionOptions::default()
    });
    let session = session.expect("a session");
    let input = session.input(&path).expect("an input");
    let opened = input.recording_with_symbols().expect("a recording");
    let functions = opened.functions();
    let found = [SCHEDULE, BLOCK].map(|at| functions.name(at).map(str::to_owned));
    assert_eq!(
        functions.name(KVM + 0x10_0010),
        None,
        "no record is of that module"
    );
    assert_eq!(functions.name(TEXT + 0x9000), None, "the kernel ends there");
    let said = opened.naming_doubts().len();
    assert_eq!(said, usize::from(found != [None, None]));
    found
}

fn recording(folder: &Path, kernel: &WrittenKernel) -> std::path::PathBuf {
    let text = format!(
        "CPU 0/KVM 100/101 [000] 1.000000: 1000000 cpu-clock:\n\
         {BLOCK:x} kvm_vcpu_block+0x40 ([kernel.kallsyms])\n{SCHEDULE:x} schedule+0x20 ([kernel.kallsyms])\n"
    );
    let path = folder.join("perf.data");
    std::fs::write(&path, perf_data::write_of_kernel(&text, kernel)).expect("it is written");
    path
}

fn of_root(root: &Path) -> SearchOptions {
    SearchOptions {
        root: Some(root.to_owned()),
        ..SearchOptions::default()
    }
}

fn both() -> [Option<String>; 2] {
    [
        Some("schedule".to_owned()),
        Some("kvm_vcpu_block".to_owned()),
    ]
}

fn kernel_only() -> [Option<String>; 2] {
    [Some("schedule".to_owned()), None]
}

#[test]
fn the_kernel_that_still_runs_names_its_functions() {
    let root = tempfile::tempdir().expect("a folder");
    running(root.path(), ID, TEXT, KVM);
    assert_eq!(names(&recorded(), &of_root(root.path())), both());
    assert_eq!(names(&recorded(), &SearchOptions::default()), [None, None]);
    // What may belong to another build is not used.
    running(root.path(), OTHER, TEXT, KVM);
    assert_eq!(names(&recorded(), &of_root(root.path())), [None, None]);
}

#[test]
fn another_boot_of_the_kernel_is_moved() {
    let root = tempfile::tempdir().expect("a folder");
    let options = of_root(root.path());
    running(root.path(), ID, LINKED, KVM + 0x5000);
    // Whether the module is the same nothing shows.
    assert_eq!(names(&recorded(), &options), kernel_only());
    let mut known = recorded();
    known.build_ids.push((
        "/lib/modules/6.1.0-test/kernel/kvm.ko".to_owned(),
        MODULE_ID,
    ));
    assert_eq!(names(&known, &options), kernel_only());
    let place = "sys/module/kvm/notes/.note.gnu.build-id";
    write(root.path(), place, note(OTHER));
    assert_eq!(names(&known, &options), kernel_only());
    write(root.path(), place, note(MODULE_ID));
    assert_eq!(names(&known, &options), both());
    // The module was loaded again, in the same boot.
    running(root.path(), ID, TEXT, KVM + 0x5000);
    assert_eq!(names(&known, &options), both());
    assert_eq!(names(&recorded(), &options), kernel_only());
}

#[test]
fn hidden_addresses_and_missing_references_name_nothing() {
    let root = tempfile::tempdir().expect("a folder");
    let options = of_root(root.path());
    running(root.path(), ID, TEXT, KVM);
    let mut without = recorded();
    without.maps[0].2 = 0;
    assert_eq!(names(&without, &options), [None, None]);
    without.maps.clear();
    assert_eq!(names(&without, &options), [None, None]);
    let mut without = recorded();
    without.build_ids.clear();
    assert_eq!(names(&without, &options), [None, None]);
    let zeros =
        "0000000000000000 T _text\n0000000000000000 T schedule\n0000000000000000 t x\t[kvm]\n";
    write(root.path(), "proc/kallsyms", zeros);
    assert_eq!(names(&recorded(), &options), [None, None]);
}

#[test]
fn copies_that_perf_keeps_name_the_kernel() {
    let cache = tempfile::tempdir().expect("a folder");
    let root = tempfile::tempdir().expect("a folder");
    running(root.path(), ID, LINKED, KVM);
    let copy = std::fs::read(root.path().join("proc/kallsyms")).expect("symbols");
    let options = SearchOptions {
        buildid_dirs: vec![cache.path().to_owned()],
        ..SearchOptions::default()
    };
    assert_eq!(names(&recorded(), &options), [None, None]);
    let (first, rest) = id_text(ID);
    write(
        cache.path(),
        &format!("[kernel.kallsyms]/{first}{rest}/kallsyms"),
        &copy,
    );
    assert_eq!(names(&recorded(), &options), kernel_only());
    let cache = tempfile::tempdir().expect("a folder");
    write(
        cache.path(),
        &format!(".build-id/{first}/{rest}/kallsyms"),
        &copy,
    );
    let options = SearchOptions {
        buildid_dirs: vec![cache.path().to_owned()],
        ..SearchOptions::default()
    };
    assert_eq!(names(&recorded(), &options), kernel_only());
}

/// An ELF file of x86-64: `.text` at `base`, a build id, and symbols of `.text`.
fn elf(kind: u16, base: u64, id: [u8; 20], symbols: &[(&str, u64)]) -> Vec<u8> {
    let mut names = vec![0];
    let mut table = vec![0; 24];
    for (name, value) in symbols {
        table.extend((names.len() as u32).to_le_bytes());
        // Global functions of section 1.
        table.extend([0x12, 0, 1, 0]);
        table.extend([*value, 0x10].map(u64::to_le_bytes).concat());
        names.extend(name.as_bytes());
        names.push(0);
    }
    let titles = b"\0.text\0.note.gnu.build-id\0.symtab\0.strtab\0.shstrtab\0";
    // Name, type, flags, address, content, link, size of an entry.
    let sections = [
        (1u32, 1u32, 6u64, base, vec![0x90; 0x2000], 0u32, 0u64),
        (7, 7, 2, 0, note(id), 0, 0),
        (26, 2, 0, 0, table, 4, 24),
        (34, 3, 0, 0, names, 0, 0),
        (42, 3, 0, 0, titles.to_vec(), 0, 0),
    ];
    let mut content = Vec::new();
    let mut headers = vec![0; 64];
    for (name, class, flags, address, bytes, link, entry) in sections {
        headers.extend([name, class].map(u32::to_le_bytes).concat());
        let place = 64 + content.len() as u64;
        headers.extend(
            [flags, address, place, bytes.len() as u64]
                .map(u64::to_le_bytes)
                .concat(),
        );
        headers.extend([link, 1].map(u32::to_le_bytes).concat());
        headers.extend([8, entry].map(u64::to_le_bytes).concat());
        content.extend(bytes);
        content.resize(content.len().next_multiple_of(8), 0);
    }
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.resize(16, 0);
    out.extend([kind, 62].map(u16::to_le_bytes).concat());
    out.extend(1u32.to_le_bytes());
    out.extend(
        [0, 0, 64 + content.len() as u64]
            .map(u64::to_le_bytes)
            .concat(),
    );
    out.extend(0u32.to_le_bytes());
    out.extend([64u16, 0, 0, 64, 6, 5].map(u16::to_le_bytes).concat());
    out.extend(content);
    out.extend(headers);
    out
}

#[test]
fn files_of_kernels_and_modules_name_them() {
    let root = tempfile::tempdir().expect("a folder");
    let kernel = [
        ("_text", LINKED),
        ("schedule", LINKED + 0x1000),
        ("later", LINKED + 0x1800),
    ];
    let options = SearchOptions {
        root: Some(root.path().to_owned()),
        debug_dirs: vec![root.path().join("usr/lib/debug")],
        ..SearchOptions::default()
    };
    for (place, id, found) in [
        ("boot/vmlinux-6.1.0-test", OTHER, [None, None]),
        ("boot/vmlinux-6.1.0-other", ID, [None, None]),
        ("boot/vmlinux-6.1.0-test", ID, kernel_only()),
        ("lib/modules/6.1.0-test/build/vmlinux", ID, kernel_only()),
        (
            "usr/lib/debug/lib/modules/6.1.0-test/vmlinux",
            ID,
            kernel_only(),
        ),
        ("usr/lib/debug/boot/vmlinux-6.1.0-test", ID, kernel_only()),
    ] {
        write(root.path(), place, elf(2, LINKED, id, &kernel));
        assert_eq!(names(&recorded(), &options), found, "{place}");
        std::fs::remove_file(root.path().join(place)).expect("it was there");
    }
    let (first, rest) = id_text(ID);
    let debug = format!("usr/lib/debug/.build-id/{first}/{rest}.debug");
    write(root.path(), &debug, elf(2, LINKED, ID, &kernel));
    assert_eq!(names(&recorded(), &options), kernel_only());
    // A release that leads elsewhere is none.
    let mut odd = recorded();
    odd.release = "../../x".to_owned();
    assert_eq!(names(&odd, &options), kernel_only());
    // The module's file, whose code begins where the module does.
    let mut known = recorded();
    known.build_ids.push((
        "/lib/modules/6.1.0-test/kernel/kvm.ko".to_owned(),
        MODULE_ID,
    ));
    let (first, rest) = id_text(MODULE_ID);
    let debug = format!("usr/lib/debug/.build-id/{first}/{rest}.debug");
    write(
        root.path(),
        &debug,
        elf(1, 0, OTHER, &[("kvm_vcpu_block", 0x100)]),
    );
    assert_eq!(names(&known, &options), kernel_only());
    write(
        root.path(),
        &debug,
        elf(1, 0, MODULE_ID, &[("kvm_vcpu_block", 0x100)]),
    );
    assert_eq!(names(&known, &options), both());
}

#[test]
fn pictures_say_where_names_come_from() {
    let root = tempfile::tempdir().expect("a folder");
    running(root.path(), ID, TEXT, KVM);
    let folder = tempfile::tempdir().expect("a folder");
    let path = recording(folder.path(), &recorded());
    let ids = |kernels: SearchOptions| {
        let session = Session::open(SessionOptions {
            kernels,
            ..SessionOptions::default()
        });
        let session = session.expect("a session");
        let input = session.input(&path).expect("an input");
        let taken = input
            .picture(&PictureOptions::to_report())
            .expect("a picture");
        let of_flames = taken.flames.iter().flat_map(|flame| flame.doubts.iter());
        let doubts = taken.picture.quality.doubts.iter().chain(of_flames);
        doubts
            .map(|doubt| doubt.id().to_owned())
            .collect::<Vec<_>>()
    };
    let has = |ids: &[String], id: &str| ids.iter().any(|one| one == id);
    let without = ids(SearchOptions::default());
    assert!(
        has(&without, "frames-unnamed") && !has(&without, "kernel-named-here"),
        "{without:?}"
    );
    let with = ids(of_root(root.path()));
    assert!(
        !has(&with, "frames-unnamed") && has(&with, "kernel-named-here"),
        "{with:?}"
    );
}
