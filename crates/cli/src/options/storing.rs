//! A store that a recorder leaves sums in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

use super::values::label;

/// Where a recorder leaves the sums of what it recorded.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoringOptions {
    /// Write the sums of each recording into the store DIR, as 'trapline export --as parquet' does, for 'trapline
    /// fleet' and 'trapline sql'.
    #[arg(long, value_name = "DIR")]
    pub store: Option<PathBuf>,

    /// With --store: store this with each recording, as role=NAME, by which the host has its peers. May be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "store", value_parser = label)]
    pub label: Vec<(String, String)>,

    /// With --store: mask names in it by the secret that this file has.
    #[arg(long, value_name = "KEYFILE", requires = "store")]
    pub mask: Option<PathBuf>,
}

impl StoringOptions {
    /// Returns the words of the command of this program that stores a recording; `None` where nobody asked for that.
    pub(crate) fn words(&self, recording: &Path) -> Option<Vec<OsString>> {
        let store = self.store.as_ref()?;
        let mut words: Vec<OsString> = ["export", "--as", "parquet", "-o"].map(Into::into).into();
        words.push(store.into());
        for (name, value) in &self.label {
            words.extend(["--label".into(), format!("{name}={value}").into()]);
        }
        if let Some(mask) = &self.mask {
            words.extend(["--mask".into(), mask.into()]);
        }
        words.extend(["--".into(), recording.into()]);
        Some(words)
    }
}
