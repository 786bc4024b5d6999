//! What a guest is asked for: by `trapline agent --for`, and by `trapline record --agent-for`.
//!
//! The tests need what those of `guest_agent.rs` need.

use std::fs;
use std::path::Path;

use crate::common::agents::{Agent, done, folder, guests, info, said};
use crate::common::trapline;
use crate::record_command::possible;

/// Returns whether this machine's kernel has an event.
fn has(event: &str) -> bool {
    Path::new("/sys/kernel/tracing/events").join(event).exists()
}

#[test]
fn system_calls_are_recorded_where_both_sides_ask_for_them() {
    if !possible() {
        return;
    }
    let folder = folder();
    let recorded = |agent: &[&str], of_guests: &[&str]| {
        let agent = Agent::start(folder.path(), &[&["--once"], agent].concat());
        let host = [
            "record",
            "--for",
            "sched",
            "-o",
            "out",
            "--agent",
            &agent.address,
            "--agent-token",
            "token",
        ];
        let exchange = "exec 3<>/dev/udp/127.0.0.1/9; echo >&3; sleep 0.1";
        let command = ["--", "bash", "-c", exchange];
        let output = done(
            folder.path(),
            &[&host[..], of_guests, &command[..]].concat(),
        );
        assert!(output.status.success(), "{output:?}");
        let out = folder.path().join("out");
        let names = info(&guests(&out)[0])["events"].to_string();
        fs::remove_dir_all(out).expect("it is removed");
        (names, said(&output))
    };
    let everything = ["--for", "cpus,io,sockets"];

    let (names, said) = recorded(&everything, &["--agent-for", "sockets"]);
    assert!(
        !names.contains("sched:") && !names.contains("net:"),
        "{names}"
    );
    if has("syscalls/sys_enter_sendto") {
        assert!(names.contains("syscalls:sys_enter_sendto"), "{names}");
    } else {
        assert!(said.contains("syscalls:sys_enter_sendto"), "{said}");
    }
    // What nobody asked for is not missed.
    assert!(!said.contains("csd:") && !said.contains("sock:"), "{said}");

    let (names, _) = recorded(&everything, &[]);
    assert!(
        names.contains("sched:") && !names.contains("syscalls:"),
        "{names}"
    );

    let (names, said) = recorded(&[], &["--agent-for", "cpus,io,sockets"]);
    assert!(
        names.contains("net:") && !names.contains("syscalls:"),
        "{names}"
    );
    assert!(
        said.contains("sockets: the agent there was started without"),
        "{said}"
    );
}

#[test]
fn what_one_cpu_asks_of_another_is_recorded_without_all_symbols() {
    if !possible() || !has("csd/csd_function_entry") {
        return;
    }
    let folder = folder();
    let bench = "\"$0\" bench wake -n 200 --row-time 1s >/dev/null";
    let program = trapline().get_program().to_owned();
    let program = program.to_str().expect("a name");
    let arguments = ["agent", "-o", "file", "--", "bash", "-c", bench, program];
    let output = done(folder.path(), &arguments);
    assert!(output.status.success(), "{output:?}");
    let file = folder.path().join("file");
    let names = info(&file)["events"].to_string();
    assert!(names.contains("ipi:ipi_send_cpu"), "{names}");
    // All of the kernel's functions have megabytes; addresses stay what they are.
    let bytes = fs::read(&file).expect("a file");
    let name = b" do_syscall_64";
    assert!(!bytes.windows(name.len()).any(|part| part == name));
    let output = done(
        folder.path(),
        &["events", "--event", "ipi:ipi_send_cpu", "file"],
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("callback="),
        "{output:?}"
    );
}
