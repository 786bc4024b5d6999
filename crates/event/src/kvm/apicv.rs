//! The processor's own interrupt controller for guests (Intel's APICv, AMD's AVIC) is set aside, or taken up again.

use crate::define::{TextForm, event};
use crate::text::{field_number, word};

event! {
    /// `kvm:kvm_apicv_inhibit_changed`: something in the way of APICv came or went
    /// (`__kvm_set_or_clear_apicv_inhibit`, `arch/x86/kvm/x86.c`; since 5.18).
    KvmApicvInhibitChanged at InhibitPlaces {
        /// Whether it came.
        set: bool = "set",
        /// What it is (`enum kvm_apicv_inhibit`, `arch/x86/include/asm/kvm_host.h`): the numbers differ between
        /// kernels.
        reason: u32 = "reason",
        /// All that is in the way now, bit `n` for reason `n`: with 0 the VM has APICv.
        inhibits: u64 = "inhibits",
    }
    text: TextForm::Whole(inhibit)
}

/// Reads `set reason=2, inhibits=0x4` or `cleared reason=2, inhibits=0x0`.
fn inhibit(text: &[u8]) -> Option<KvmApicvInhibitChanged> {
    let set = match word(text) {
        b"set" => true,
        b"cleared" => false,
        _ => return KvmApicvInhibitChanged::from_fields(text),
    };
    Some(KvmApicvInhibitChanged {
        set,
        reason: u32::try_from(field_number(text, "reason")?).ok()?,
        inhibits: field_number(text, "inhibits")?,
    })
}

#[cfg(test)]
mod tests {
    use tracefmt::FormatCatalog;

    use super::*;
    use crate::{Body, Data, Event, EventType, FieldReader, TextReader};

    const FORMAT: &[u8] = b"name: kvm_apicv_inhibit_changed\nID: 7\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:int reason;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:bool set;\toffset:12;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned long inhibits;\toffset:16;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"%s\", \"\"\n";

    #[test]
    fn records_and_texts_say_the_same_to_conditions() {
        let mut formats = FormatCatalog::default();
        formats.add("kvm", FORMAT);
        let format = formats.by_id(7).unwrap();
        let recorded = EventType::of_format(0, format, "kvm:kvm_apicv_inhibit_changed");
        let printed = EventType::bare(1, "kvm:kvm_apicv_inhibit_changed", true);
        let mut record = [0; 24];
        record[8] = 2;
        record[12] = 1;
        record[16] = 5;
        let read = |text: &'static str| Body::Text {
            text,
            data: TextReader::read_whole(printed.kind, text.as_bytes()),
        };
        let forms = [
            (&recorded, Body::Raw(&record)),
            (&printed, read("set reason=2, inhibits=0x5")),
            (&printed, read("reason=2 set=1 inhibits=0x5")),
        ];
        for (ty, body) in forms {
            let event = Event::bare(ty, (1, 0, 7), body);
            let data = event.data();
            let expected = KvmApicvInhibitChanged {
                set: true,
                reason: 2,
                inhibits: 5,
            };
            assert_eq!(data, Data::KvmApicvInhibitChanged(expected));
            let number = |name| FieldReader::of(ty, name).number(&event, &data);
            let numbers = ["set", "reason", "inhibits"].map(number);
            assert_eq!(numbers, [Some(1), Some(2), Some(5)]);
        }
        let cleared = inhibit(b"cleared reason=2, inhibits=0x1").unwrap();
        assert_eq!((cleared.set, cleared.inhibits), (false, 1));
        assert_eq!(inhibit(b"cleared reason=2, inhib"), None);
    }
}
