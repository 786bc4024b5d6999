//! Ftrace's own events: `print`, `bprint`, `kernel_stack`, `raw_data`.

use super::{env, format_of};
use crate::{FormatText, PrintStyle};

const IP: (&str, u32, u32, u32) = ("unsigned long ip", 8, 8, 0);

fn ftrace(name: &str, fields: &[(&str, u32, u32, u32)], print: &str, body: &[u8]) -> String {
    let mut record = vec![0; 8];
    record.extend(body);
    let mut out = FormatText::new();
    let format = format_of("ftrace", name, fields, print);
    format.print(&record, &env(), PrintStyle::TraceCmd, &mut out);
    String::from_utf8(out.as_bytes().to_vec()).unwrap()
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

#[test]
fn ftraces_own_events_print() {
    let text = [&words(&[0xffff_ffff_8100_0014])[..], b"hello world\n\0"].concat();
    let print = r#""%ps: %s", (void *)REC->ip, REC->buf"#;
    assert_eq!(
        ftrace("print", &[IP, ("char buf[]", 16, 0, 0)], print, &text),
        "do_a: hello world\n"
    );
    let stack = [
        &3u32.to_le_bytes()[..],
        &[0; 4],
        &words(&[0xffff_ffff_8100_0010, 0xffff_ffff_8100_0104]),
    ]
    .concat();
    let fields = &[
        ("int size", 8, 4, 1),
        ("unsigned long caller[8]", 16, 64, 0),
    ];
    let print = r#""\t=> %ps\n\t=> %ps\n" "\t=> %ps\n", (void *)REC->caller[0], (void *)REC->caller[1],
        (void *)REC->caller[2]"#;
    let want = "\t=> do_a\n\t=> do_b\n\t=> 0x0\n";
    assert_eq!(ftrace("kernel_stack", fields, print, &stack), want);
    let fields = &[("unsigned int id", 8, 4, 0), ("char buf[]", 12, 0, 0)];
    let print = r#""id:%04x %08x", REC->id, (int)REC->buf[0]"#;
    assert_eq!(
        ftrace("raw_data", fields, print, &[0x12, 0, 0, 0, 0xf1, 2]),
        "id:0012 000000f1"
    );
}

/// The last line's `%c` and second star are the kernel's; the tool stumbles on both.
#[test]
fn binary_trace_printk_finds_its_format_and_arguments() {
    let fields = &[IP, ("const char * fmt", 16, 8, 0), ("u32 buf[]", 24, 0, 0)];
    let print = r#""%ps: %s", (void *)REC->ip, REC->fmt"#;
    let bprint = |format: u64, args: &[u8]| {
        let body = [&words(&[0xffff_ffff_8100_0010, format])[..], args].concat();
        ftrace("bprint", fields, print, &body)
    };
    let args = [
        &(-5i32).to_le_bytes()[..],
        b"text\0\0\0\0",
        &words(&[0xabc, 0xffff_ffff_8100_0100]),
    ]
    .concat();
    assert_eq!(
        bprint(0xffff_ffff_8300_0010, &args),
        "do_a: n=-5 s=text l=abc do_b"
    );
    assert_eq!(bprint(0x55, &args), "do_a: (NO FORMAT FOUND at 55)\n");
    let numbers = |n: &[i32]| n.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let args = [
        &numbers(&[5, 42, 2])[..],
        b"abcd\0aa:bb\0\0",
        &numbers(&[65]),
    ]
    .concat();
    assert_eq!(
        bprint(0xffff_ffff_8300_0020, &args),
        "do_a:    42|ab|aa:bb % A"
    );
    assert_eq!(bprint(0xffff_ffff_8300_0010, b""), "do_a: n=0 s= l=0 0x0");
}
