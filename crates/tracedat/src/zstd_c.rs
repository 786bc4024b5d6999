//! zstd by its own library, which is built where the feature `c-zstd` asks for it.
//!
//! It gives the same bytes as `zstd_rust`, and calls what is wrong with a damaged frame by names of its own. No window
//! is set aside: a frame is decoded in the place where it is wanted.

use zstd_safe::{DCtx, DParameter, get_error_name};

/// A decoder whose tables are kept between calls. There is none if there is no memory for it.
pub(crate) struct ZstdDecoder(Option<DCtx<'static>>);

impl ZstdDecoder {
    pub(crate) fn new() -> ZstdDecoder {
        let mut context = DCtx::try_create();
        if let Some(context) = &mut context {
            // As `zstd_rust` does. A library that cannot do so refuses frames whose checksum is wrong.
            let _ = context.set_parameter(DParameter::ForceIgnoreChecksum(true));
        }
        ZstdDecoder(context)
    }

    /// Decodes all frames of `input` into `out`. Returns how many bytes came out, or what is wrong.
    pub(crate) fn run(&mut self, input: &[u8], out: &mut [u8]) -> Result<usize, String> {
        let Some(context) = &mut self.0 else {
            return Err("there is no memory for its tables".into());
        };
        context
            .decompress(out, input)
            .map_err(|code| get_error_name(code).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::ZstdDecoder;
    use crate::zstd_rust;
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    proptest! {
        /// Both decoders give the same bytes, of damaged frames too where both take them.
        #[test]
        fn both_decoders_agree(
            words in prop::collection::vec(0u16..300, 0..4000),
            frames in 1usize..3,
            harm in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
            room in 0usize..3,
        ) {
            let plain: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let frame = compress_to_vec(plain.as_slice(), CompressionLevel::Fastest);
            let mut packed = frame.repeat(frames);
            if let Some((at, to)) = &harm {
                let at = at.index(packed.len());
                packed[at] = *to;
            }
            let size = (plain.len() * frames + room).saturating_sub(1);
            let mut outs = [vec![0; size], vec![0; size]];
            let c = ZstdDecoder::new().run(&packed, &mut outs[0]);
            let rust = zstd_rust::ZstdDecoder::new().run(&packed, &mut outs[1]);
            prop_assert!(harm.is_some() || c.is_ok() == rust.is_ok(), "{c:?} {rust:?}");
            if let (Ok(c), Ok(rust)) = (c, rust) {
                prop_assert_eq!(&outs[0][..c], &outs[1][..rust]);
            }
        }
    }
}
