//! One page of the kernel's ring buffer: its header and the records in it.
//!
//! Sources: `kernel/trace/ring_buffer.c` and `include/linux/ring_buffer.h` of the kernel (record types,
//! time extends, the bits of the commit word), `src/kbuffer-parse.c` of libtraceevent (how the reference
//! reader sums times up).

use tracefmt::Endian;

/// Bit 31 of the commit word: events were lost before this page.
const MISSED_EVENTS: u64 = 1 << 31;
/// Bit 30 of the commit word: how many stands behind the last record.
const MISSED_STORED: u64 = 1 << 30;
/// The bits of the commit word that are a length.
const COMMIT_MASK: u64 = (1 << 27) - 1;
/// An absolute time stamp has 59 bits; the upper five are those of the time before it.
const STAMP_UPPER: u64 = 0xf8 << 56;
/// Bits of a record's time delta, and the shift of a time extend's upper part.
const DELTA_BITS: u32 = 27;

/// Values of `type_len` above 28, as in `enum ring_buffer_type`.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Byte order as a type, so that the decoding loop is compiled once for each.
pub(crate) trait ByteOrder {
    fn u16(bytes: [u8; 2]) -> u16;
    fn u32(bytes: [u8; 4]) -> u32;
    /// Splits a record's first word into `type_len` and time delta.
    fn split(word: u32) -> (u32, u32);

    #[inline(always)]
    fn u32_at(page: &[u8], at: usize) -> Option<u32> {
        Some(Self::u32(*page.get(at..)?.first_chunk::<4>()?))
    }
}

/// [`ByteOrder`] of little-endian kernels.
pub(crate) struct LittleEndian;
/// [`ByteOrder`] of big-endian kernels, where the bit fields also lie the other way round.
pub(crate) struct BigEndian;

impl ByteOrder for LittleEndian {
    #[inline(always)]
    fn u16(bytes: [u8; 2]) -> u16 {
        u16::from_le_bytes(bytes)
    }
    #[inline(always)]
    fn u32(bytes: [u8; 4]) -> u32 {
        u32::from_le_bytes(bytes)
    }
    #[inline(always)]
    fn split(word: u32) -> (u32, u32) {
        (word & 31, word >> 5)
    }
}

impl ByteOrder for BigEndian {
    #[inline(always)]
    fn u16(bytes: [u8; 2]) -> u16 {
        u16::from_be_bytes(bytes)
    }
    #[inline(always)]
    fn u32(bytes: [u8; 4]) -> u32 {
        u32::from_be_bytes(bytes)
    }
    #[inline(always)]
    fn split(word: u32) -> (u32, u32) {
        (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1))
    }
}

/// What a page says of events lost before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MissedEvents {
    #[default]
    None,
    /// Some, the page had no room to say how many.
    Unknown,
    Count(u64),
}

impl MissedEvents {
    /// Adds what an earlier page without any record said.
    pub(crate) fn and(self, other: MissedEvents) -> MissedEvents {
        match (self, other) {
            (MissedEvents::None, m) | (m, MissedEvents::None) => m,
            (MissedEvents::Count(a), MissedEvents::Count(b)) => {
                MissedEvents::Count(a.saturating_add(b))
            }
            _ => MissedEvents::Unknown,
        }
    }
}

/// Where the parts of a page lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageLayout {
    /// Bytes of a page, header included.
    pub page_size: usize,
    /// Bytes of the commit word: `sizeof(long)` of the kernel.
    pub commit_size: usize,
    /// Offset of the first record.
    pub data_offset: usize,
    pub endian: Endian,
}

/// The header of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageHeader {
    /// Time of the page; the first record adds its delta to it.
    pub time: u64,
    /// Bytes of records in the page.
    pub committed: usize,
    pub missed: MissedEvents,
}

impl PageLayout {
    /// Reads a page's header; `None` when the bytes end before the first record could begin, or the length
    /// in it does not fit into a page.
    pub(crate) fn header(&self, page: &[u8]) -> Option<PageHeader> {
        let time = self.endian.u64(page, 0)?;
        let commit = self.endian.uint(page, 8, self.commit_size)?;
        let committed = (commit & COMMIT_MASK) as usize;
        if committed > self.page_size.saturating_sub(self.data_offset) {
            return None;
        }
        let missed = if commit & MISSED_EVENTS == 0 {
            MissedEvents::None
        } else if commit & MISSED_STORED == 0 {
            MissedEvents::Unknown
        } else {
            match self
                .endian
                .uint(page, self.data_offset + committed, self.commit_size)
            {
                Some(0) => MissedEvents::None,
                Some(count) if count <= i64::MAX as u64 => MissedEvents::Count(count),
                _ => MissedEvents::Unknown,
            }
        };
        Some(PageHeader {
            time,
            committed,
            missed,
        })
    }
}

impl PageLayout {
    /// Returns the records of a page and what surrounds them, as far as they are there.
    pub(crate) fn records<'p>(&self, page: &'p [u8], header: &PageHeader) -> &'p [u8] {
        &page[..page.len().min(self.data_offset + header.committed)]
    }

    /// Counts the records of a page.
    pub(crate) fn count(&self, page: &[u8], header: &PageHeader) -> u64 {
        self.whole_records(page, header).count
    }

    /// Goes over the records of a page, up to its end or to what is no whole record.
    pub(crate) fn whole_records(&self, page: &[u8], header: &PageHeader) -> WholeRecords {
        let page = self.records(page, header);
        let mut cursor = PageCursor {
            at: self.data_offset,
            time: header.time,
        };
        let mut whole = WholeRecords {
            end: self.data_offset,
            ..WholeRecords::default()
        };
        loop {
            let step = match self.endian {
                Endian::Little => cursor.next::<LittleEndian>(page),
                Endian::Big => cursor.next::<BigEndian>(page),
            };
            match step {
                PageStep::Record(..) => {
                    let first = whole.times.map_or(cursor.time, |times| times.0);
                    whole.times = Some((first, cursor.time));
                    whole.count += 1;
                    whole.end = cursor.at;
                }
                PageStep::End => return whole,
                PageStep::Broken => {
                    whole.broken = true;
                    return whole;
                }
            }
        }
    }

    /// Returns a page with these records, zeros behind them. How many were lost before it stands behind the records, if
    /// that is known and there is room.
    pub(crate) fn made(&self, time: u64, records: &[u8], missed: MissedEvents) -> Vec<u8> {
        let mut page = Vec::with_capacity(self.page_size);
        page.extend(self.endian.u64_bytes(time));
        let behind = self.data_offset + records.len();
        let has_room = behind + self.commit_size <= self.page_size;
        let mut commit = records.len() as u64 & COMMIT_MASK;
        let count = match missed {
            MissedEvents::None => None,
            MissedEvents::Count(count) if has_room => {
                commit |= MISSED_EVENTS | MISSED_STORED;
                Some(count)
            }
            MissedEvents::Unknown | MissedEvents::Count(_) => {
                commit |= MISSED_EVENTS;
                None
            }
        };
        page.extend(self.word(commit));
        page.resize(self.data_offset, 0);
        page.extend_from_slice(records);
        page.extend(count.map(|count| self.word(count)).unwrap_or_default());
        page.resize(self.page_size, 0);
        page
    }

    /// Returns a page with the same times and records, each of which `mask` changed in place. What stands between
    /// records that is no time, and what is no whole record, is 0 or left out.
    pub(crate) fn masked(
        &self,
        page: &[u8],
        header: &PageHeader,
        mask: &mut dyn FnMut(&mut [u8]),
    ) -> Vec<u8> {
        let records = match self.endian {
            Endian::Little => self.masked_records::<LittleEndian>(page, header, mask),
            Endian::Big => self.masked_records::<BigEndian>(page, header, mask),
        };
        self.made(header.time, &records, header.missed)
    }

    fn masked_records<O: ByteOrder>(
        &self,
        page: &[u8],
        header: &PageHeader,
        mask: &mut dyn FnMut(&mut [u8]),
    ) -> Vec<u8> {
        let page = self.records(page, header);
        let mut cursor = PageCursor {
            at: self.data_offset,
            time: header.time,
        };
        let mut out = vec![0; page.len()];
        let mut end = cursor.at;
        while let PageStep::Record(payload) = cursor.next::<O>(page) {
            let at = cursor.at - payload.len();
            copy_heads::<O>(page, &mut out, end..at);
            if let Some(record) = out.get_mut(at..cursor.at) {
                record.copy_from_slice(payload);
                mask(record);
            }
            end = cursor.at;
        }
        out.truncate(end);
        out.drain(..self.data_offset.min(end));
        out
    }

    /// Returns the bytes of a word of the kernel.
    fn word(&self, number: u64) -> Vec<u8> {
        match self.commit_size {
            4 => {
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                self.endian.u32_bytes(number).to_vec()
            }
            _ => self.endian.u64_bytes(number).to_vec(),
        }
    }
}

/// The records of a page that are whole.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WholeRecords {
    pub count: u64,
    /// Raw times of the first and of the last.
    pub times: Option<(u64, u64)>,
    /// Where the last one ends, from the start of the page.
    pub end: usize,
    /// Whether something stands behind it that is no whole record.
    pub broken: bool,
}

/// Place in a page: the next record's header, and the time so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PageCursor {
    /// Offset of the next record's header from the start of the page.
    pub at: usize,
    /// Raw time of the record before it.
    pub time: u64,
}

/// What [`PageCursor::next`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageStep<'p> {
    /// A record's payload. The cursor has its time and stands behind it.
    Record(&'p [u8]),
    /// No record is left in the page.
    End,
    /// What stands here is no whole record: the page is cut off or damaged.
    Broken,
}

impl PageCursor {
    /// Steps over the next record, and over whatever carries time or nothing before it.
    ///
    /// `page` must end where its last record ends.
    #[inline(always)]
    pub(crate) fn next<'p, O: ByteOrder>(&mut self, page: &'p [u8]) -> PageStep<'p> {
        loop {
            let at = self.at;
            let Some(word) = O::u32_at(page, at) else {
                return if at >= page.len() {
                    PageStep::End
                } else {
                    PageStep::Broken
                };
            };
            let (kind, delta) = O::split(word);
            if kind.wrapping_sub(1) < 28 {
                self.time = self.time.wrapping_add(u64::from(delta));
                let end = at + 4 + (kind as usize) * 4;
                let Some(payload) = page.get(at + 4..end) else {
                    return PageStep::Broken;
                };
                self.at = end;
                return PageStep::Record(payload);
            }
            // Everything else has a second word.
            if kind == PADDING && delta == 0 {
                // The kernel's null event: nothing follows in this page.
                self.at = page.len();
                return PageStep::End;
            }
            let Some(second) = O::u32_at(page, at + 4) else {
                return PageStep::Broken;
            };
            let long = u64::from(second) << DELTA_BITS | u64::from(delta);
            match kind {
                0 => {
                    // A long record: the length counts its own four bytes, and is rounded up to whole words.
                    let Some(len) = second.checked_sub(4) else {
                        return PageStep::Broken;
                    };
                    self.time = self.time.wrapping_add(u64::from(delta));
                    let end = ((len as usize + 3) & !3) + at + 8;
                    let Some(payload) = page.get(at + 8..end) else {
                        return PageStep::Broken;
                    };
                    self.at = end;
                    return PageStep::Record(payload);
                }
                PADDING => {
                    // A record its writer discarded; the reference reader counts its delta all the same.
                    self.time = self.time.wrapping_add(u64::from(delta));
                    self.at = at.saturating_add(4).saturating_add(second as usize);
                }
                TIME_EXTEND => {
                    self.time = self.time.wrapping_add(long);
                    self.at = at + 8;
                }
                _ => {
                    debug_assert_eq!(kind, TIME_STAMP);
                    self.time = long | self.time & STAMP_UPPER;
                    self.at = at + 8;
                }
            }
        }
    }
}

/// Copies the words that say what follows: times, the length of what a writer discarded, the head of a record. What was
/// discarded is not copied.
fn copy_heads<O: ByteOrder>(page: &[u8], out: &mut [u8], range: std::ops::Range<usize>) {
    let mut at = range.start;
    while let Some(word) = O::u32_at(page, at).filter(|_| at < range.end) {
        let length = match O::split(word).0 {
            PADDING => O::u32_at(page, at + 4).map_or(4, |second| 4 + second as usize),
            TIME_EXTEND | TIME_STAMP => 8,
            _ => range.end - at,
        };
        let head = at..range.end.min(at + 8);
        if let (Some(to), Some(from)) = (out.get_mut(head.clone()), page.get(head)) {
            to.copy_from_slice(from);
        }
        at = at.saturating_add(length.max(4));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: PageLayout = PageLayout {
        page_size: 4096,
        commit_size: 8,
        data_offset: 16,
        endian: Endian::Little,
    };

    fn words(list: &[u32]) -> Vec<u8> {
        list.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn all(page: &[u8], time: u64) -> (Vec<(u64, usize)>, PageStep<'_>) {
        let mut cursor = PageCursor { at: 0, time };
        let mut out = Vec::new();
        loop {
            match cursor.next::<LittleEndian>(page) {
                PageStep::Record(payload) => out.push((cursor.time, payload.len())),
                other => return (out, other),
            }
        }
    }

    #[test]
    fn every_kind_of_item_moves_time_as_the_kernel_says() {
        let page = words(&[
            5 << 5 | 1,
            0xaaaa, // 4 bytes, 5 later
            3 << 5 | TIME_EXTEND,
            2, // 2 << 27 + 3 later
            1 << 5,
            10,
            0,
            0, // long record of 6 bytes, rounded up to 8, 1 later
            7 << 5 | PADDING,
            8,
            0, // discarded, 7 later
            9 << 5 | TIME_STAMP,
            1, // absolute: 1 << 27 + 9
            2,
            1,
            2,
            PADDING,
            0xffff_ffff, // null event
        ]);
        let top = 0x11u64 << 59;
        let (records, end) = all(&page, top + 100);
        let extend = (2u64 << 27) + 3;
        assert_eq!(
            records,
            [
                (top + 105, 4),
                (top + 105 + extend + 1, 8),
                ((top & STAMP_UPPER) + (1 << 27) + 9, 8)
            ]
        );
        assert_eq!(end, PageStep::End);
    }

    #[test]
    fn a_masked_page_has_times_and_records_and_nothing_else() {
        let records = words(&[
            5 << 5 | 2,
            0xaaaa,
            0xbbbb,
            7 << 5 | PADDING,
            12,
            0xdead, // discarded
            0xdead,
            3 << 5 | TIME_EXTEND,
            2,
            1 << 5,
            12,
            0xaaaa, // a long record
            0xbbbb,
            7 << 5 | PADDING,
            8,
            0xdead, // discarded, at the end
        ]);
        let mut page = LAYOUT.made(77, &records, MissedEvents::Count(3));
        let stored = 16 + records.len() + 8;
        page[stored..stored + 4].copy_from_slice(&0xdeadu32.to_le_bytes());
        let header = LAYOUT.header(&page).unwrap();
        let mut seen = 0;
        let masked = LAYOUT.masked(&page, &header, &mut |record| {
            seen += 1;
            record[4..].fill(0);
        });
        assert_eq!((seen, masked.len()), (2, page.len()));
        let after = LAYOUT.header(&masked).unwrap();
        assert_eq!((after.time, after.missed), (77, MissedEvents::Count(3)));
        let times = |page: &[u8], header| LAYOUT.whole_records(page, header).times;
        assert_eq!(times(&masked, &after), times(&page, &header));
        let has = |word: u32| masked.windows(4).any(|w| w == word.to_le_bytes());
        assert!(has(0xaaaa) && !has(0xbbbb) && !has(0xdead));
    }

    #[test]
    fn a_record_that_does_not_fit_is_broken() {
        assert_eq!(all(&words(&[2, 1]), 0), (vec![], PageStep::Broken));
        assert_eq!(all(&words(&[0, 100, 0]), 0), (vec![], PageStep::Broken));
        assert_eq!(all(&words(&[0, 3, 0]), 0), (vec![], PageStep::Broken));
        assert_eq!(all(&words(&[TIME_EXTEND]), 0), (vec![], PageStep::Broken));
        assert_eq!(
            all(&words(&[1 << 5 | PADDING, u32::MAX]), 0),
            (vec![], PageStep::End)
        );
        assert_eq!(all(&[1, 2], 0), (vec![], PageStep::Broken));
    }

    #[test]
    fn the_commit_word_counts_lost_events() {
        let mut page = vec![0u8; 4096];
        page[..8].copy_from_slice(&77u64.to_le_bytes());
        page[8..16].copy_from_slice(&(8 | MISSED_EVENTS).to_le_bytes());
        let header = LAYOUT.header(&page).unwrap();
        assert_eq!(
            (header.time, header.committed, header.missed),
            (77, 8, MissedEvents::Unknown)
        );
        page[8..16].copy_from_slice(&(8 | MISSED_EVENTS | MISSED_STORED).to_le_bytes());
        page[24..32].copy_from_slice(&312u64.to_le_bytes());
        assert_eq!(
            LAYOUT.header(&page).unwrap().missed,
            MissedEvents::Count(312)
        );
        page[8..16].copy_from_slice(&4081u64.to_le_bytes());
        assert_eq!(LAYOUT.header(&page), None, "more than fits into the page");
    }
}
