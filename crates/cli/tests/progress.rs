//! How far a long read is shows on a terminal, and nowhere else.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::trapline;

/// Whether `script` of util-linux is there, which runs a command with a terminal of its own.
fn has_script() -> bool {
    let found = Command::new("script").arg("--version").output().is_ok();
    let required = std::env::var_os("TRAPLINE_REQUIRE_TOOLS").is_some_and(|set| set == "1");
    assert!(found || !required, "there is no script");
    found
}

/// Returns what a command of a shell shows on a terminal, in which `$TRAPLINE` is the program.
fn on_terminal(command: &str, folder: &Path) -> String {
    let program = trapline().get_program().to_owned();
    let output = Command::new("script")
        .args(["-qec", command, "/dev/null"])
        .current_dir(folder)
        .env("TRAPLINE", program)
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh")
        .stdin(std::process::Stdio::null())
        .output()
        .expect("script runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Writes a text of some megabytes.
fn long_text(folder: &Path) {
    let line = |at: u32| {
        let (name, rest) = match at % 2 {
            0 => ("kvm_exit", "vcpu 0 reason msr rip 0x1 info1 0 info2 0"),
            _ => ("kvm_entry", "vcpu 0, rip 0x1"),
        };
        format!(
            " CPU 0/KVM  1700 [001] {}.{:06}: kvm:{name}: {rest}\n",
            10 + at / 1_000_000,
            at % 1_000_000
        )
    };
    let text: String = (0..60_000).map(line).collect();
    assert!(text.len() > 4 << 20);
    fs::write(folder.join("long.txt"), text).expect("a written file");
}

/// The recording comes in two pieces, with more than two seconds between them.
const SLOWLY: &str = "{ head -c 3000000 long.txt; sleep 2.3; tail -c +3000001 long.txt; }";

#[test]
fn a_long_read_shows_how_far_it_is_on_a_terminal_alone() {
    if !has_script() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    long_text(folder.path());
    let runs = [
        // What is shown, and the command.
        (true, format!("{SLOWLY} | \"$TRAPLINE\" exits -")),
        (
            true,
            format!("{SLOWLY} | \"$TRAPLINE\" exits --format json - > out.json"),
        ),
        (
            true,
            format!("{SLOWLY} | \"$TRAPLINE\" events - > events.txt"),
        ),
        // To a program that may be a pager; where standard error is a file; what takes no two seconds; what prints
        // meanwhile.
        (false, format!("{SLOWLY} | \"$TRAPLINE\" exits - | cat")),
        (
            false,
            format!("{SLOWLY} | \"$TRAPLINE\" exits - 2> errors.txt"),
        ),
        (false, "\"$TRAPLINE\" exits - < long.txt".to_owned()),
        (false, format!("{SLOWLY} | TERM=dumb \"$TRAPLINE\" exits -")),
    ];
    // Each waits, and all of them at once.
    let texts = std::thread::scope(|scope| {
        let runs = runs.each_ref();
        let path = folder.path();
        let runs = runs.map(|(_, command)| scope.spawn(move || on_terminal(command, path)));
        runs.map(|run| run.join().expect("it runs"))
    });
    for ((shown, command), text) in runs.into_iter().zip(texts) {
        assert_eq!(text.contains("taking in: "), shown, "{command}\n{text}");
        assert!(!text.contains("panicked"), "{text}");
        if shown {
            // The line is taken away again.
            let after = text.rsplit("taking in: ").next().unwrap_or_default();
            assert!(
                after.contains("\x1b[2K") || after.contains("\x1b[K"),
                "{text:?}"
            );
        }
    }
    let errors = fs::read_to_string(folder.path().join("errors.txt")).expect("a file");
    assert_eq!(errors, "");
    let json = fs::read_to_string(folder.path().join("out.json")).expect("a file");
    assert!(json.starts_with('{') && !json.contains('\x1b'));
}

#[test]
fn the_line_is_gone_before_an_error_is_printed() {
    if !has_script() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let text = on_terminal(
        "{ yes $(printf '%0999d') | head -c 3000000; sleep 2.3; yes $(printf '%0999d') | head -c 3000000; } | \
         \"$TRAPLINE\" exits -",
        folder.path(),
    );
    let (line, error) = text.split_once("trapline: ").expect("an error");
    let behind = line.rsplit("taking in: ").next().unwrap_or_default();
    assert!(line.contains("taking in: "), "{text:?}");
    assert!(
        behind.contains("\x1b[2K") || behind.contains("\x1b[K"),
        "{text:?}"
    );
    assert!(!error.contains("taking in: "), "{text:?}");
}

#[test]
fn a_terminal_has_colours_and_a_pipe_has_none() {
    if !has_script() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    long_text(folder.path());
    for (command, coloured) in [
        ("\"$TRAPLINE\" report long.txt", true),
        ("\"$TRAPLINE\" report long.txt | cat", false),
        ("NO_COLOR=1 \"$TRAPLINE\" report long.txt", false),
        ("\"$TRAPLINE\" report --color never long.txt", false),
        ("TERM=dumb \"$TRAPLINE\" report long.txt", false),
    ] {
        let command = format!("unset NO_COLOR CLICOLOR CLICOLOR_FORCE CI; {command}");
        let text = on_terminal(&command, folder.path());
        assert!(text.contains("vmexit"), "{text}");
        assert_eq!(text.contains("\x1b[1m"), coloured, "{command}\n{text}");
    }
}
