//! `trapline virtqueues`: of recordings made by hand, whose counts are known, of recordings of a guest on its host, and
//! of what this machine wrote to its own disk, if that is a virtio device.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{case, cases, json, note, run, trapline, write_text};
use crate::record_command::possible;

fn by_hand(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/virtqueues");
    folder.join(name)
}

/// Returns the row of a source, a device and a queue.
fn row<'d>(document: &'d Value, source: &str, device: &str, queue: &Value) -> &'d Value {
    let rows = document["rows"].as_array().expect("rows");
    let mut found = rows.iter().filter(|row| {
        let named = row["device"].as_str().expect("a name");
        row["source"] == source && named.starts_with(device) && row["queue"] == *queue
    });
    let row = found
        .next()
        .unwrap_or_else(|| panic!("{source} {device} {queue}: {document}"));
    assert!(
        found.next().is_none(),
        "{source} {device} {queue}: {document}"
    );
    row
}

fn has(row: &Value, fields: &[(&str, Value)]) {
    for (name, value) in fields {
        assert_eq!(row[name], *value, "{name}: {row}");
    }
}

#[test]
fn a_guest_says_what_its_driver_did() {
    let document = json(&["virtqueues"], &by_hand("guest.txt")).expect("a document");
    assert_eq!(
        document["rows"].as_array().map(Vec::len),
        Some(4),
        "{document}"
    );
    has(
        row(&document, "driver", "virtio0", &json!("output.0")),
        &[
            ("seen", json!("guest")),
            ("vm_pid", Value::Null),
            ("added", json!(3)),
            ("used", json!(2)),
            ("notifications", json!(2)),
            ("added_per_notification", json!(1.5)),
            ("interrupts", Value::Null),
            ("sent_bytes", Value::Null),
            ("span_ns", json!(1_000_000_000)),
            ("notifications_per_second", json!(2.0)),
        ],
    );
    has(
        row(&document, "driver", "virtio0", &json!("input.0")),
        &[("interrupts", json!(1)), ("added", Value::Null)],
    );
    has(
        row(&document, "frames", "eth0", &Value::Null),
        &[
            ("sent", json!(2)),
            ("sent_bytes", json!(1612)),
            ("received", json!(1)),
            ("received_bytes", json!(84)),
        ],
    );
    has(
        row(&document, "requests", "254:0", &Value::Null),
        &[
            ("added", json!(3)),
            ("used", json!(2)),
            ("sent", json!(1)),
            ("sent_bytes", json!(4096)),
            ("received", json!(1)),
            ("received_bytes", json!(65536)),
            ("interrupts", Value::Null),
        ],
    );
    assert_eq!(document["unpaired"], 1);
}

/// What was recorded and did not come is none, which is not the same as what nobody recorded.
#[test]
fn requests_that_never_completed_are_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "\
             dd-440   [001]   10.003000: block_rq_issue: 254,0 WS 4096 () 2048 + 8 [dd]
             dd-440   [001]   10.003100: block_rq_issue: 254,16 WS 4096 () 2048 + 8 [dd]
           ping-433   [000]   10.003200: net_dev_xmit: dev=eth0 skbaddr=0xffff888003a1c200 len=98 rc=0
";
    let complete =
        "         <idle>-0     [001]   10.004000: block_rq_complete: 254,0 WS () 2048 + 8 [0]\n";
    for (text, used) in [
        (text.to_owned(), [Value::Null, Value::Null]),
        (format!("{text}{complete}"), [json!(1), json!(0)]),
    ] {
        let file = write_text(folder.path(), "requests.txt", &text);
        let document = json(&["virtqueues"], &file).expect("a document");
        for (device, used) in ["254:0", "254:16"].iter().zip(used) {
            let fields = [
                ("added", json!(1)),
                ("used", used),
                ("sent", json!(1)),
                ("received", json!(0)),
                ("received_bytes", json!(0)),
                ("interrupts", Value::Null),
            ];
            has(row(&document, "requests", device, &Value::Null), &fields);
        }
        let frames = row(&document, "frames", "eth0", &Value::Null);
        has(frames, &[("sent", json!(1)), ("received", Value::Null)]);
    }
}

#[test]
fn a_host_says_what_its_back_ends_did() {
    let document = json(&["virtqueues"], &by_hand("host.txt")).expect("a document");
    assert_eq!(
        document["rows"].as_array().map(Vec::len),
        Some(7),
        "{document}"
    );
    for (address, queue, count) in [
        ("0xfebff004:W", json!("1"), 2),
        ("0xfebff000:W", json!("0"), 1),
        ("0xfe003000:W", Value::Null, 1),
    ] {
        has(
            row(&document, "notifications", address, &queue),
            &[("seen", json!("host")), ("notifications", json!(count))],
        );
    }
    let worker = |queue: Value| row(&document, "back end", "vhost-4509 (4530)", &queue);
    has(worker(json!("0xffff888100000078")), &[("used", json!(67))]);
    has(worker(json!("0xffff888100000000")), &[("used", json!(1))]);
    has(
        worker(Value::Null),
        &[
            ("interrupts", json!(1)),
            ("used", Value::Null),
            ("sent", json!(1)),
            ("sent_bytes", Value::Null),
        ],
    );
    // What a tap device receives its guest has sent.
    has(
        row(&document, "frames", "vnet0", &Value::Null),
        &[
            ("sent_bytes", json!(1500)),
            ("received_bytes", json!(98)),
            ("seen", json!("host")),
        ],
    );
    assert_eq!(document["other_interfaces"], 1);
    let text = run(["virtqueues".as_ref(), by_hand("host.txt").as_os_str()]);
    let text = text.text();
    assert!(text.contains("1 interface of the host"), "{text}");
    assert!(!text.contains("has no events of"), "{text}");
}

/// Every event with a length is counted once, whatever the recording's form; what is not recorded is said.
#[test]
fn rows_have_what_the_events_have() {
    let mut seen = 0;
    for case in cases() {
        let Ok(document) = json(&["virtqueues"], &case.path) else {
            continue;
        };
        let of_host = document["rows"].as_array().expect("rows");
        let notified = of_host
            .iter()
            .filter_map(|row| row["notifications"].as_u64());
        let notified: u64 = notified.sum();
        let exits = json(&["exits", "--event", "mmio"], &case.path);
        let writes = exits.ok().map_or(0, |exits| {
            let rows = exits["rows"].as_array().expect("rows").iter();
            let named = rows.filter(|row| {
                let name = row["name"].as_str().unwrap_or_default();
                name.contains("queue notify")
                    && row["key"].as_str().is_some_and(|key| key.ends_with(":W"))
            });
            named.filter_map(|row| row["count"].as_u64()).sum()
        });
        // The table of exits leaves out accesses whose time is not known; here all count.
        assert!(
            notified >= writes,
            "{}: {notified} {writes}",
            case.path.display()
        );
        seen += u32::from(writes > 0);
    }
    assert!(seen > 2, "{seen}");
}

#[test]
fn a_host_and_its_guest_are_one_table() {
    let host = case("arm64/virtio-mmio/boot2-vsock/trace.dat.zst");
    let guest = case("arm64/virtio-mmio/boot2-vsock/trace-guest1.dat.zst").path;
    let document = json(
        &["virtqueues", "--guest", &guest.display().to_string()],
        &host.path,
    );
    let document = document.expect("a document");
    let frames = row(&document, "frames", "eth0", &Value::Null);
    // As trace-cmd report prints them: their lengths added up.
    let events = run([
        "events".as_ref(),
        "--event".as_ref(),
        "net_dev_xmit".as_ref(),
        guest.as_os_str(),
    ]);
    let events = events.text();
    let bytes: u64 = events
        .lines()
        .filter_map(|line| {
            let (_, rest) = line.split_once(" len=")?;
            rest.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum();
    assert!(bytes > 0, "{events}");
    has(
        frames,
        &[
            ("vm_pid", json!(2508)),
            ("seen", json!("guest")),
            ("sent", json!(115)),
            ("sent_bytes", json!(bytes)),
        ],
    );
    has(
        row(&document, "back end", "qemu-system-aar", &Value::Null),
        &[("vm_pid", json!(2508)), ("sent", json!(116))],
    );
}

/// Where the temporary folder is on a virtio disk, what is written there goes through its queue.
#[test]
fn what_this_machine_writes_goes_through_its_disk() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let device = folder.path().metadata().expect("it is there").dev();
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff);
    let driver = format!("/sys/dev/block/{major}:{minor}/device/driver");
    let driver = std::fs::read_link(driver).unwrap_or_default();
    if !driver.ends_with("virtio_blk") {
        return note("SKIPPED: the temporary folder is on no virtio disk");
    }
    let mut record = trapline();
    let record = record.current_dir(folder.path()).args([
        "record",
        "--for",
        "virtqueues",
        "-o",
        "one",
        "--",
    ]);
    let record = record.args([
        "dd",
        "if=/dev/zero",
        "of=written",
        "bs=1M",
        "count=8",
        "conv=fsync",
    ]);
    let output = record.output().expect("the program");
    assert!(output.status.success(), "{output:?}");
    let document = json(&["virtqueues"], &folder.path().join("one")).expect("a document");
    let disk = row(
        &document,
        "requests",
        &format!("{major}:{minor}"),
        &Value::Null,
    );
    assert!(disk["sent_bytes"].as_u64() >= Some(8 << 20), "{document}");
    // What came back is counted from the events alone. A kernel may write none of what its idle task does, completions
    // among it: a guest under PVM was seen to, in recordings of perf just as in these.
    let events = ["events", "--event", "block_rq_complete"];
    let output = trapline()
        .args(events)
        .arg(folder.path().join("one"))
        .output()
        .expect("the program");
    let completions = String::from_utf8(output.stdout).expect("text");
    let of_disk = format!("block_rq_complete: {major},{minor} ");
    let completions = completions.lines().filter(|line| line.contains(&of_disk));
    let completions = completions.count() as u64;
    if completions == 0 {
        note("SKIPPED: this kernel writes no block_rq_complete");
    }
    assert_eq!(
        disk["used"].as_u64().unwrap_or(0),
        completions,
        "{document}"
    );
}
