//! The format of an event without the fields that programs do not know.

use tracefmt::EventFormat;

/// Returns the text of a format with these fields alone beside those that all events have, and a line for printing that
/// names no others; the text as it is where it has no others.
pub(super) fn of(text: &[u8], format: &EventFormat, known: impl Fn(&str) -> bool) -> Vec<u8> {
    let own = format.own_fields();
    if own.iter().all(|field| known(&field.name)) {
        return text.to_vec();
    }
    let common = format.fields.get(..format.common).unwrap_or_default();
    let line = |field: &tracefmt::FormatField| {
        // As the kernel has it: the brackets of an array stand behind the name.
        let (kind, brackets) = match field.ctype.split_once('[') {
            Some((kind, brackets)) => (kind.to_owned(), format!("[{brackets}")),
            None => (field.ctype.clone(), String::new()),
        };
        format!(
            "\tfield:{kind} {}{brackets};\toffset:{};\tsize:{};\tsigned:{};\n",
            field.name,
            field.offset,
            field.size,
            u8::from(field.signed)
        )
    };
    let kept: Vec<_> = own.iter().filter(|field| known(&field.name)).collect();
    let common: String = common.iter().map(line).collect();
    let fields: String = kept.iter().copied().map(line).collect();
    let texts: Vec<String> = kept
        .iter()
        .map(|field| format!("{}=0x%llx", field.name))
        .collect();
    let values: String = kept
        .iter()
        .map(|field| format!(", (unsigned long long)REC->{}", field.name))
        .collect();
    format!(
        "name: {}\nID: {}\nformat:\n{common}\n{fields}\nprint fmt: \"{}\"{values}\n",
        format.name,
        format.id,
        texts.join(" ")
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use tracefmt::Abi;

    use super::*;

    const TEXT: &str = "name: kvm_entry\nID: 9\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:char name[16];\toffset:12;\tsize:16;\tsigned:0;\n\
        \tfield:unsigned long rip;\toffset:32;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"vcpu %u, rip 0x%lx %s\", REC->vcpu_id, REC->rip, REC->name\n";

    #[test]
    fn a_format_has_the_fields_that_are_known() {
        let parse = |text: &[u8]| EventFormat::parse("kvm", text, Abi::default());
        let whole = parse(TEXT.as_bytes()).expect("a format");
        let same = of(TEXT.as_bytes(), &whole, |_| true);
        assert_eq!(same, TEXT.as_bytes());
        let less = of(TEXT.as_bytes(), &whole, |name| name == "rip");
        let less = parse(&less).expect("a format");
        assert_eq!((less.id, less.common, less.fields.len()), (9, 2, 3));
        let rip = less.field("rip").expect("it is there");
        assert_eq!((rip.offset, rip.size), (32, 8));
        assert!(less.diagnostics.is_empty(), "{:?}", less.diagnostics);
        let none = parse(&of(TEXT.as_bytes(), &whole, |_| false)).expect("a format");
        assert_eq!(none.own_fields().len(), 0);
    }
}
