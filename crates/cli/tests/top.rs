//! `trapline top` on this machine: what it prints, and that Prometheus reads what it exports. Where the kernel does
//! not let it count, or Prometheus is not installed, that is skipped, unless `TRAPLINE_REQUIRE_TOOLS=1` is set.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::{free_port, note, tools_are_required, trapline};

/// A process that looks like QEMU with one vCPU, as far as `/proc` says, and works and sleeps.
struct Vm(Child);

impl Vm {
    fn start(name: &str) -> Vm {
        let script = "printf 'CPU 3/KVM' > /proc/self/comm; echo; while :; do i=0; \
                      while [ $i -lt 200 ]; do i=$((i+1)); done; read -t 0.002 <> <(:); done";
        let mut command = Command::new("bash");
        let start = "exec -a qemu-system-x86_64 bash -c \"$0\" \"$@\"";
        command.args(["-c", start, script, "-name", name]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("bash starts");
        let mut line = [0];
        let out = child.stdout.as_mut().expect("it was asked for");
        out.read_exact(&mut line)
            .expect("it says that it has its name");
        Vm(child)
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `top`; nothing where this machine does not let it count.
fn top(args: &[&str]) -> Option<String> {
    let output = trapline().arg("top").args(args).output();
    let output = output.expect("the program starts");
    let said = String::from_utf8(output.stderr).expect("text");
    if output.status.success() {
        return Some(String::from_utf8(output.stdout).expect("text"));
    }
    assert_eq!(said.lines().count(), 1, "an error is one line: {said}");
    let missing = [
        "tracefs",
        "KVM events",
        "needs root",
        "CAP_BPF",
        "does not allow BPF",
    ];
    assert!(missing.iter().any(|one| said.contains(one)), "{said}");
    assert!(
        !tools_are_required(),
        "TRAPLINE_REQUIRE_TOOLS is set: {said}"
    );
    note(&format!("SKIPPED: top was not tested here: {said}"));
    None
}

#[test]
fn a_vm_is_counted_by_name() {
    let vm = Vm::start("guest=web,debug-threads=on");
    let Some(text) = top(&[
        "--once",
        "--interval",
        "300ms",
        "--format",
        "json",
        "--vm",
        "web",
    ]) else {
        return;
    };
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["command"], "top");
    assert_eq!(document["quality"]["lost_events"], 0);
    let vcpus = document["vcpus"].as_array().expect("a list");
    let vcpu = vcpus.iter().find(|vcpu| vcpu["vm_pid"] == vm.0.id());
    let vcpu = vcpu.expect("the VM's only vCPU");
    assert_eq!(
        (&vcpu["vm_name"], &vcpu["vcpu"]),
        (&"web".into(), &3.into())
    );
    let states = [
        "guest", "kernel", "user", "poll", "halted", "runnable", "unknown",
    ];
    let of = |name: &str| vcpu[format!("{name}_ns")].as_u64().expect("a duration");
    let sum: u64 = states.into_iter().map(of).sum();
    assert_eq!(sum, of("observed"));
    // vCPUs are read one after the other, so each was watched a little longer or shorter than the next.
    let interval = document["interval_ns"].as_u64().expect("a duration");
    assert!(of("observed").abs_diff(interval) < interval / 2);
    assert!(interval >= 300_000_000);
    let text = top(&["--once", "--interval", "50ms"]).expect("it ran before");
    assert!(
        text.contains("web")
            && text.contains("counted in the kernel, by BPF programs")
            && text.contains("vCPUs: per cent of time by state"),
        "{text}"
    );
    let text = top(&["--once", "--interval", "50ms", "--format", "csv"]).expect("it ran before");
    assert!(
        text.starts_with("table,vm_pid,vm_name,vcpu,tid,key,name,"),
        "{text}"
    );
}

#[test]
fn a_vm_that_ends_meanwhile_keeps_its_name() {
    if top(&["--once", "--interval", "10ms"]).is_none() {
        return;
    }
    for way in [&[][..], &["--events"]] {
        let vm = Vm::start("guest=ending,debug-threads=on");
        let pid = vm.0.id();
        let mut command = trapline();
        command.args(["top", "--once", "--interval", "2s", "--format", "json"]);
        command.args(["--vm", "ending"]).args(way);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = child.spawn().expect("the program starts");
        std::thread::sleep(Duration::from_millis(1200));
        drop(vm);
        let output = child.wait_with_output().expect("the program ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let vcpus = document["vcpus"].as_array().expect("a list");
        let vcpu = vcpus.iter().find(|vcpu| vcpu["vm_pid"] == pid);
        assert_eq!(vcpu.expect("its vCPU")["vm_name"], "ending", "{document}");
    }
}

/// Returns what of this test's VMs is under a name in a document, by a number that each has.
fn of_vm<'d>(document: &'d Value, list: &str, vm: &Vm) -> Vec<&'d Value> {
    let all = document[list].as_array().expect("a list").iter();
    all.filter(|one| one["vm_pid"] == vm.0.id()).collect()
}

#[test]
fn events_are_counted_as_the_programs_in_the_kernel_count() {
    let vm = Vm::start("guest=both,debug-threads=on");
    let once = ["--once", "--interval", "1s", "--format", "json"];
    // Both at once, over the same time but for their beginnings: what they count of the VM differs by little.
    let programs = std::thread::spawn(move || top(&once));
    let mut with = once.to_vec();
    with.push("--events");
    let events = top(&with);
    let programs = programs.join().expect("it does not panic");
    let (Some(programs), Some(events)) = (programs, events) else {
        return;
    };
    let read = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    let (programs, events) = (read(&programs), read(&events));
    assert_eq!(programs["counted_by"], "bpf");
    assert_eq!(events["counted_by"], "events");
    assert_eq!(events["counted_why"], Value::Null);
    for document in [&programs, &events] {
        let vcpus = of_vm(document, "vcpus", &vm);
        assert_eq!(vcpus.len(), 1, "{document}");
        assert_eq!(
            (&vcpus[0]["vm_name"], &vcpus[0]["vcpu"]),
            (&"both".into(), &3.into())
        );
        let of = |name: &str| vcpus[0][name].as_u64().expect("a number");
        // It sleeps 2 ms each time, and is woken each time. Some kernels keep many wake-ups to themselves
        // (`Summary::withheld`): not from the programs, and how many it says.
        let withheld = document["dropped"]["withheld"].as_u64();
        let withheld = withheld.expect("a number");
        assert!(of("woken") + withheld > 5, "{document}");
        let lost = document["quality"]["lost_events"].as_u64();
        assert!(lost.is_some_and(|lost| lost >= withheld), "{document}");
        assert!(document["counted_by"] == "events" || withheld == 0);
        let waits = of("woken_ns") + of("preempted_ns");
        assert!(
            of("runnable_ns") <= waits + of("observed_ns") / 2,
            "{document}"
        );
        let behind = of_vm(document, "behind", &vm);
        let behind: u64 = behind.iter().filter_map(|one| one["ran_ns"].as_u64()).sum();
        assert!(behind <= of("observed_ns"), "{document}");
    }
}

#[test]
fn where_bpf_is_not_allowed_events_are_counted_and_the_reason_is_said() {
    if top(&["--once", "--interval", "10ms", "--events"]).is_none() {
        return;
    }
    let program = trapline().get_program().to_owned();
    let run = |drops: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--inh-caps=-all", &format!("--bounding-set={drops}")]);
        command.arg(&program);
        command.args(["top", "--once", "--interval", "10ms", "--format", "json"]);
        command.output()
    };
    let Ok(output) = run("-bpf,-sys_admin") else {
        return note("SKIPPED: no setpriv (util-linux) here");
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["counted_by"], "events");
    let why = document["counted_why"].as_str().expect("a reason");
    assert!(why.contains("CAP_BPF"), "{why}");
    // Without the right to the events as well it says both.
    let output = run("-bpf,-sys_admin,-perfmon").expect("it ran before");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("CAP_BPF") && said.contains("CAP_PERFMON"),
        "{said}"
    );
}

#[test]
fn a_map_of_devices_has_to_be_one() {
    let place = tempfile::tempdir().expect("a folder");
    let missing = place.path().join("mtree.txt");
    let args = ["top", "--once", "--interval", "10ms", "--mtree"];
    let output = trapline().args(args).arg(&missing).output();
    let output = output.expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("--mtree") && said.contains("mtree.txt"),
        "{said}"
    );
}

#[test]
fn what_is_asked_for_in_vain_is_said() {
    let output = trapline()
        .args(["top", "--once", "--interval", "1"])
        .output();
    let output = output.expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("'1' has no unit"));
    for (args, says, status) in [
        (&["--format", "json"][..], "--once", 2),
        (&[], "no terminal", 1),
    ] {
        let output = trapline().arg("top").args(args).output();
        let output = output.expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
    }
    if top(&["--once", "--interval", "10ms"]).is_none() {
        return;
    }
    let output = trapline()
        .args(["top", "--once", "--interval", "10ms", "--vm", "no-such-vm"])
        .output();
    let said = String::from_utf8_lossy(&output.expect("the program starts").stderr).into_owned();
    assert!(said.contains("there is no VM named no-such-vm"), "{said}");
    // It is said before anything is counted: nobody waits an hour for it.
    for (asked, says) in [
        (["--vm", "no-such-vm"], "there is no VM named no-such-vm"),
        (
            ["--pid", "2147483647"],
            "--pid 2147483647: there is no such process",
        ),
    ] {
        let mut command = trapline();
        command
            .args(["top", "--once", "--interval", "3600s"])
            .args(asked);
        let output = command.output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
    }
}

/// A process that is ended with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let timeout = Some(Duration::from_secs(20));
    stream.set_read_timeout(timeout).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Asks again and again, until there is an answer as it is wanted.
fn until(address: SocketAddr, path: &str, wanted: impl Fn(&str) -> bool) -> String {
    const TRIES: u32 = 300;
    let mut last = None;
    for _ in 0..TRIES {
        last = get(address, path).or(last);
        if let Some(answer) = last.take_if(|answer| wanted(answer)) {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    panic!("{address}{path} does not answer as expected: {last:?}");
}

/// The processor of a virtual machine may count nothing; page faults and CPU time every kernel counts.
#[test]
fn counters_of_vcpus_are_counted_and_one_remark_says_what_is_not() {
    let vm = Vm::start("guest=counted,debug-threads=on");
    let once = [
        "--once",
        "--interval",
        "300ms",
        "--counters",
        "--vm",
        "counted",
    ];
    let Some(text) = top(&[&once[..], &["--format", "json"]].concat()) else {
        return;
    };
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let row = &document["counters"][0];
    assert_eq!(row["vcpu"], 3, "{document}");
    assert_eq!(row["tid"].as_u64(), Some(vm.0.id().into()), "{document}");
    let cpu_ns = row["cpu_ns"].as_u64().expect("a time");
    let interval_ns = document["interval_ns"].as_u64().expect("a time");
    assert!(cpu_ns > 0 && cpu_ns < 2 * interval_ns, "{document}");
    assert!(row["page_faults"].is_u64(), "{document}");
    let warnings = document["quality"]["warnings"].as_array().expect("a list");
    let remarks = warnings.iter().filter_map(Value::as_str);
    let remarks = remarks.filter(|text| text.contains("are not counted: "));
    let missing = usize::from(row["guest_cycles"].is_null());
    assert_eq!(remarks.count(), missing, "{document}");
    let csv = top(&[&once[..], &["--format", "csv"]].concat()).expect("it was counted before");
    assert!(
        csv.contains("guest_ipc") && csv.lines().count() == 2,
        "{csv}"
    );
    let text = top(&["--once", "--interval", "10ms"]).expect("it was counted before");
    assert!(!text.contains("million cycles"), "{text}");
}

#[test]
fn prometheus_reads_what_is_exported() {
    let vm = Vm::start("guest=metrics,debug-threads=on");
    if top(&["--once", "--interval", "10ms"]).is_none() {
        return;
    }
    let address = free_port();
    let listen = address.to_string();
    let mut command = trapline();
    let exporter = command
        .args(["top", "--counters", "--prometheus", &listen])
        .spawn();
    let _exporter = Running(exporter.expect("the program starts"));
    let answer = until(address, "/metrics", |answer| {
        answer.contains("trapline_vcpu_seconds_total{vm=\"metrics\"")
    });
    assert!(
        answer.contains("Content-Type: text/plain; version=0.0.4"),
        "{answer}"
    );
    assert!(answer.contains("trapline_vcpu_page_faults_total{vm=\"metrics\""));
    assert!(until(address, "/", |_| true).contains("href=\"/metrics\""));
    assert!(until(address, "/x", |_| true).starts_with("HTTP/1.1 404"));
    let asked = until(address, "/metrics?job=trapline", |_| true);
    assert!(asked.starts_with("HTTP/1.1 200"), "{asked}");
    let (_, text) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let tools =
        ["promtool", "prometheus"].map(|tool| Command::new(tool).arg("--version").output().is_ok());
    if tools != [true, true] {
        assert!(
            !tools_are_required(),
            "TRAPLINE_REQUIRE_TOOLS is set, and promtool or prometheus is missing"
        );
        return note(
            "SKIPPED: no promtool and prometheus here, so what is exported was read by neither",
        );
    }
    let mut command = Command::new("promtool");
    let command = command.args(["check", "metrics"]).stdin(Stdio::piped());
    let check = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut check = check.expect("promtool starts");
    check
        .stdin
        .take()
        .expect("it was asked for")
        .write_all(text.as_bytes())
        .expect("promtool reads");
    let checked = check.wait_with_output().expect("promtool ends");
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success(), "{said}\n{text}");
    let place = tempfile::tempdir().expect("a folder");
    let config = place.path().join("prometheus.yml");
    let scrape = format!(
        "global:\n  scrape_interval: 1s\nscrape_configs:\n- job_name: trapline\n  static_configs:\n  - targets: \
         ['{listen}']\n"
    );
    fs::write(&config, scrape).expect("the folder is ours");
    let own = free_port();
    let mut command = Command::new("prometheus");
    command.arg(format!("--config.file={}", config.display()));
    command.arg(format!(
        "--storage.tsdb.path={}",
        place.path().join("data").display()
    ));
    command.arg(format!("--web.listen-address={own}"));
    let prometheus = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _prometheus = Running(prometheus.expect("prometheus starts"));
    let query = "/api/v1/query?query=sum(trapline_vcpu_seconds_total%7Bvm%3D%22metrics%22%7D)";
    let answer = until(own, query, |answer| answer.contains("\"value\":["));
    assert!(answer.contains("\"status\":\"success\""), "{answer}");
    let query = "/api/v1/query?query=up%7Bjob%3D%22trapline%22%7D";
    let answer = until(own, query, |answer| answer.contains("\"value\":["));
    assert!(answer.contains(",\"1\"]"), "the target is up: {answer}");
    drop(vm);
}
