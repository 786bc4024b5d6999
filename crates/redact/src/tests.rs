//! A record of which every kind of field is known.

use tracefmt::{Abi, FormatCatalog};

use crate::Redactor;
use perfdata::PrivacyMask;
use tracedat::TracePrivacyMask;

const FORMAT: &str = "name: secret_event\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:__data_loc char[] filename;\toffset:24;\tsize:4;\tsigned:0;\n\
    \tfield:__be32 saddr;\toffset:28;\tsize:4;\tsigned:0;\n\
    \tfield:void * function;\toffset:32;\tsize:8;\tsigned:0;\n\
    \tfield:s64 delta;\toffset:40;\tsize:8;\tsigned:1;\n\
    \tfield:__u8 mac[6];\toffset:48;\tsize:6;\tsigned:0;\n\
    \tfield:unsigned int number;\toffset:56;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"%d\", REC->number\n";

const FUNCTION: u64 = 0xffff_ffff_8123_4567;

fn record(comm: &str) -> Vec<u8> {
    let mut record = vec![7, 0, 1, 0, 42, 0, 0, 0];
    record.extend(comm.as_bytes());
    // Behind a name there may be what was there before.
    record.resize(24, b'Z');
    record[8 + comm.len()] = 0;
    record.extend((64u32 | 16 << 16).to_le_bytes());
    record.extend([10, 1, 2, 3]);
    record.extend(FUNCTION.to_le_bytes());
    record.extend((-5i64).to_le_bytes());
    record.extend([0x52, 0x54, 1, 2, 3, 4, b'S', b'S']);
    record.extend(1234u32.to_le_bytes());
    record.extend(*b"SSSS");
    record.extend(*b"/home/alice/db\0\0");
    record.extend(*b"SSSSSSSS");
    record
}

fn masked(comm: &str, redactor: &mut Redactor<'_>) -> Vec<u8> {
    let mut bytes = record(comm);
    redactor.tracepoint(Some(7), &mut bytes);
    bytes
}

#[test]
fn of_a_record_numbers_stay_and_nothing_else() {
    let mut formats = FormatCatalog::default();
    formats.abi = Abi::default();
    formats.add("secret", FORMAT.as_bytes());
    let mut redactor = Redactor::new(&formats, 12_345);
    let bytes = masked("postgres", &mut redactor);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    for secret in ["postgres", "alice", "Z", "S", "home"] {
        assert!(!text.contains(secret), "{secret}: {text:?}");
    }
    assert_eq!(&bytes[..8], &record("postgres")[..8], "the common fields");
    assert_eq!(&bytes[8..16], b"task-1\0\0");
    assert_eq!(&bytes[28..32], &[0; 4], "an address of a network");
    assert_eq!(
        &bytes[40..48],
        &(-5i64).to_le_bytes(),
        "a small negative number"
    );
    assert_eq!(&bytes[48..56], &[0; 8], "single bytes");
    assert_eq!(&bytes[56..60], &1234u32.to_le_bytes());
    let function = u64::from_le_bytes(bytes[32..40].try_into().expect("eight bytes"));
    assert!(function < FUNCTION && (FUNCTION - function).is_multiple_of(4096));
    assert_eq!(redactor.address(FUNCTION + 0x1000), function + 0x1000);
    // The same by the same, and roles as they are.
    assert_eq!(masked("postgres", &mut redactor), bytes);
    assert_eq!(&masked("bash", &mut redactor)[8..15], b"task-2\0");
    assert_eq!(&masked("CPU 3/KVM", &mut redactor)[8..18], b"CPU 3/KVM\0");
    // Without a format nothing is known but the common fields.
    let mut unknown = record("postgres");
    redactor.tracepoint(Some(8), &mut unknown);
    assert_eq!(&unknown[..8], &bytes[..8]);
    assert!(unknown[8..].iter().all(|byte| *byte == 0));
}

/// ftrace declares eight addresses of a stack, and writes as many as there are.
#[test]
fn a_stack_keeps_all_of_its_addresses() {
    const STACK: &str = "name: kernel_stack\nID: 4\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n\n\
        print fmt: \"\"\n";
    let mut formats = FormatCatalog::default();
    formats.abi = Abi::default();
    formats.add("ftrace", STACK.as_bytes());
    let mut redactor = Redactor::new(&formats, 5);
    let mut record = vec![4, 0, 0, 0, 42, 0, 0, 0, 12, 0, 0, 0, b'S', b'S', b'S', b'S'];
    for at in 0..12 {
        record.extend((FUNCTION + at).to_le_bytes());
    }
    redactor.ring_record(&mut record);
    assert_eq!(&record[12..16], &[0; 4]);
    for (at, word) in (0..).zip(record[16..].chunks_exact(8)) {
        let address = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        assert_eq!(address, redactor.address(FUNCTION + at));
    }
}
