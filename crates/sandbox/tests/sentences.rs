//! What is said of a sandbox: what is in force, and what the kernel does not know.

use sandbox::{FilesRestriction, SandboxRequest, SandboxState};

fn said(files: FilesRestriction, landlock: u8, calls: bool) -> String {
    let request = SandboxRequest {
        folders: vec!["/tmp".into(), "/home/me/reports".into(), "/tmp".into()],
        files: vec!["/dev/null".into()],
    };
    let state = SandboxState {
        files,
        landlock,
        calls,
    };
    state.sentences(&request).join("\n")
}

#[test]
fn what_is_in_force_is_said_and_what_is_not() {
    let all = said(FilesRestriction::Whole, 6, true);
    assert!(
        all.starts_with(
            "Landlock (version 6): of files none is run, and these alone are written: /dev/null, below \
             /home/me/reports, below /tmp"
        ),
        "{all}"
    );
    assert!(
        all.contains("Landlock refuses TCP connections (Linux 6.7), requests"),
        "{all}"
    );
    assert!(!all.contains("not refuse"), "{all}");

    let old = said(FilesRestriction::Partial, 1, true);
    assert!(old.contains("truncating others is not refused"), "{old}");
    assert!(
        old.contains("Landlock does not refuse TCP connections"),
        "{old}"
    );

    let middle = said(FilesRestriction::Whole, 4, false);
    assert!(
        middle.contains("Landlock refuses TCP connections (Linux 6.7)\n"),
        "{middle}"
    );
    assert!(
        middle.contains("does not refuse requests to devices (6.10), signals"),
        "{middle}"
    );
    assert!(
        middle.ends_with("no seccomp: no system call is refused"),
        "{middle}"
    );

    let none = said(FilesRestriction::None, 0, false);
    assert_eq!(none.lines().count(), 2, "{none}");
}
