//! Frames of the reference compressor and of another, whole, in pieces, and damaged.

use proptest::prelude::*;
use unzstd::{Decoder, Stream};

/// A simple generator of numbers, so that the contents of the frames in `tests/frames` are known here.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// Lines as a recording has them: much the same, with numbers that change.
fn lines(count: u64) -> Vec<u8> {
    let mut numbers = Numbers(88_172_645_463_325_252);
    let names = [
        "kvm_exit",
        "kvm_entry",
        "kvm_mmio",
        "sched_switch",
        "kvm_page_fault",
    ];
    let mut out = String::new();
    for line in 0..count {
        let name = names[numbers.next(5) as usize];
        let (a, b) = (numbers.next(1 << 12), numbers.next(64));
        out.push_str(&format!("{line} {name}: rip 0xffffffff81{a:x} info {b}\n"));
    }
    out.into_bytes()
}

/// Words of four bytes, of which few bits change: codes of every length.
fn words(count: u64) -> Vec<u8> {
    let mut numbers = Numbers(42);
    (0..count)
        .flat_map(|n| {
            let wide = numbers.next(1 << (1 + n % 24));
            (wide as u32).to_le_bytes()
        })
        .collect()
}

/// Bytes that cannot be compressed.
fn noise(count: u64) -> Vec<u8> {
    let mut numbers = Numbers(7);
    (0..count).map(|_| numbers.next(256) as u8).collect()
}

/// Few letters, without repetition: Huffman codes with all literals and hardly a match.
fn letters(count: u64) -> Vec<u8> {
    let mut numbers = Numbers(3);
    (0..count)
        .map(|_| b'a' + (numbers.next(26) * numbers.next(26) / 25) as u8)
        .collect()
}

/// Short patterns, each repeated: matches that overlap themselves.
fn patterns() -> Vec<u8> {
    let mut out = Vec::new();
    for len in 1..40usize {
        let pattern: Vec<u8> = (0..len).map(|n| (n * 7 + len) as u8).collect();
        out.extend(pattern.iter().cycle().take(len * 5 + 37));
        out.push(len as u8);
    }
    out
}

/// The contents by the name of the frame's file. The frames are those of zstd 1.5.4, `zstd -LEVEL`; `long` with
/// `--long=27`, `check` with `--check`, others with `--no-check`; `pipe` from a pipe, so without content size.
fn content(name: &str) -> Vec<u8> {
    match name.split('-').next().unwrap() {
        "lines" => lines(4000),
        "words" => words(4000),
        "noise" => noise(600),
        "letters" => letters(4000),
        "patterns" => patterns(),
        "zeros" => vec![0; 1 << 20],
        "short" => b"short".to_vec(),
        "empty" => Vec::new(),
        "small" => lines(20),
        "two" => [lines(10), patterns()].concat(),
        other => panic!("{other}"),
    }
}

fn frames() -> Vec<(&'static str, &'static [u8])> {
    macro_rules! frames {
        ($($name:literal),* $(,)?) => {
            vec![$(($name, include_bytes!(concat!("frames/", $name, ".zst")).as_slice())),*]
        };
    }
    frames![
        "lines-1",
        "lines-9",
        "lines-19",
        "lines-22-long",
        "lines-3-pipe",
        "words-1",
        "words-3-check",
        "words-19",
        "noise-3",
        "letters-1",
        "letters-19",
        "patterns-1",
        "patterns-12",
        "patterns-19",
        "zeros-1",
        "zeros-19",
        "short-3",
        "empty-3",
        "small-3",
        "small-19",
        "two-3",
    ]
}

#[test]
fn frames_of_the_reference_compressor_are_decoded() {
    let mut decoder = Decoder::new();
    let mut out = Vec::new();
    for (name, frame) in frames() {
        let expected = content(name);
        decoder
            .decode(frame, expected.len(), &mut out)
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(out == expected, "{name}");
        // With more room than is needed, and with less.
        decoder.decode(frame, usize::MAX / 2, &mut out).unwrap();
        assert!(out == expected, "{name}");
        if !expected.is_empty() {
            assert!(
                decoder.decode(frame, expected.len() - 1, &mut out).is_err(),
                "{name}"
            );
            assert!(expected.starts_with(&out), "{name}");
        }
    }
}

#[test]
fn frames_may_arrive_in_pieces() {
    for (name, frame) in frames() {
        let expected = content(name);
        for piece in [1, 7, 1000, frame.len()] {
            let mut stream = Stream::new();
            let mut out = Vec::new();
            for piece in frame.chunks(piece) {
                stream
                    .push(piece, &mut |bytes| out.extend_from_slice(bytes))
                    .unwrap();
            }
            assert!(out == expected, "{name} in pieces of {piece}");
            assert!(stream.at_frame_end(), "{name}");
        }
    }
}

#[test]
fn several_frames_and_frames_to_be_skipped_are_one_after_another() {
    let frames = frames();
    let frame = |name: &str| frames.iter().find(|f| f.0 == name).unwrap().1;
    let skip = [0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let input = [
        frame("short-3"),
        &skip,
        frame("words-3-check"),
        frame("empty-3"),
        frame("small-3"),
    ]
    .concat();
    let expected = [content("short"), content("words"), content("small")].concat();
    let mut out = Vec::new();
    Decoder::new()
        .decode(&input, expected.len(), &mut out)
        .unwrap();
    assert!(out == expected);
    let mut out = Vec::new();
    let mut stream = Stream::new();
    for piece in input.chunks(13) {
        stream
            .push(piece, &mut |bytes| out.extend_from_slice(bytes))
            .unwrap();
    }
    assert!(out == expected && stream.at_frame_end());
}

#[test]
fn a_stream_keeps_the_window_and_not_more() {
    // A megabyte of noise, twice: the second half is one copy of the first, from far back.
    let half = noise(400_000);
    let content = [half.clone(), half].concat();
    let frame = ruzstd::encoding::compress_to_vec(
        &content[..],
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let mut stream = Stream::new();
    let mut out = Vec::new();
    for piece in frame.chunks(5000) {
        stream
            .push(piece, &mut |bytes| out.extend_from_slice(bytes))
            .unwrap();
    }
    assert!(out == content);
}

#[test]
fn a_cut_frame_says_so_and_keeps_its_whole_blocks() {
    let frames = frames();
    let (_, frame) = frames.iter().find(|f| f.0 == "lines-1").unwrap();
    let expected = content("lines-1");
    let mut decoder = Decoder::new();
    let mut out = Vec::new();
    let mut kept = 0;
    for cut in (1..frame.len()).step_by(61) {
        let error = decoder
            .decode(&frame[..cut], expected.len(), &mut out)
            .unwrap_err();
        assert!(error.ends_early(), "cut at {cut}: {error}");
        assert!(out.len() >= kept && expected.starts_with(&out));
        kept = out.len();
    }
    assert!(kept > 0, "the frame has more than one block");
}

#[test]
fn what_is_no_frame_is_told() {
    let mut out = Vec::new();
    let mut told = |data: &[u8]| {
        Decoder::new()
            .decode(data, 1000, &mut out)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        told(b"no frame"),
        "no zstd frame, at byte 0x0 of the compressed data"
    );
    assert_eq!(
        told(&[0x28]),
        "the data ends early, at byte 0x0 of the compressed data"
    );
    // A dictionary, a reserved bit, a reserved kind of block.
    assert!(
        told(&[0x28, 0xb5, 0x2f, 0xfd, 0x21, 9, 1, 0, 0])
            .starts_with("a frame that needs a dictionary")
    );
    assert!(
        told(&[0x28, 0xb5, 0x2f, 0xfd, 0x28, 9, 1, 0, 0])
            .starts_with("a frame header with a reserved bit")
    );
    let block = "a block of an unknown kind or size, at byte 0x6 of the compressed data";
    assert_eq!(told(&[0x28, 0xb5, 0x2f, 0xfd, 0x20, 9, 7, 0, 0]), block);
    let mut stream = Stream::new();
    assert!(
        stream
            .push(b"\x28\xb5\x2f\xfd\x00\xff\0\0\0", &mut |_| {})
            .is_err(),
        "a window of terabytes"
    );
}

/// Contents with repetition of all kinds.
fn contents() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        (any::<u8>(), 1usize..5000).prop_map(|(b, n)| vec![b; n]),
        (prop::collection::vec(any::<u8>(), 1..30), 1usize..60).prop_map(|(p, n)| p.repeat(n)),
        (prop::collection::vec(0u8..4, 1..300)),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_another_compressor_wrote_is_decoded(content in contents(), piece in 1usize..3000) {
        let frame = ruzstd::encoding::compress_to_vec(&content[..], ruzstd::encoding::CompressionLevel::Fastest);
        let mut out = Vec::new();
        Decoder::new().decode(&frame, content.len(), &mut out).unwrap();
        prop_assert_eq!(&out, &content);
        let mut streamed = Vec::new();
        let mut stream = Stream::new();
        for piece in frame.chunks(piece) {
            stream.push(piece, &mut |bytes| streamed.extend_from_slice(bytes)).unwrap();
        }
        prop_assert_eq!(&streamed, &content);
    }

    /// Whatever happens to a frame: no panic, never more than the limit, and where another decoder takes the frame
    /// too, the same comes out.
    #[test]
    fn damaged_frames_stay_within_the_limit(
        which in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
        limit in 0usize..400_000,
    ) {
        let frames = frames();
        let mut frame = frames[which.index(frames.len())].1.to_vec();
        for (at, bits) in flips {
            let at = at.index(frame.len());
            frame[at] ^= bits;
        }
        if cut.index(4) == 0 {
            frame.truncate(cut.index(frame.len()));
        }
        let mut out = Vec::new();
        let result = Decoder::new().decode(&frame, limit, &mut out);
        prop_assert!(out.len() <= limit);
        let mut streamed = Vec::new();
        let mut stream = Stream::new();
        let pushed = stream.push(&frame, &mut |bytes| {
            if streamed.len() < 1 << 20 {
                streamed.extend_from_slice(bytes);
            }
        });
        if result.is_ok() {
            let mut other = vec![0; limit];
            let mut decoder = ruzstd::decoding::FrameDecoder::new();
            if let Ok(len) = decoder.decode_all(&frame, &mut other) {
                prop_assert_eq!(&out, &other[..len]);
            }
            if pushed.is_ok() {
                prop_assert_eq!(&out, &streamed);
            }
        }
    }
}
