//! Event formats that are taken from elsewhere.

use source::{FileContent, OpenOptions, ReaderOptions, RecordingBytes};
use tracefmt::FormatCatalog;

use crate::{Error, InputPurpose, SessionOptions, sniff};

/// Event formats of another recording, or of a folder.
#[derive(Debug, Default)]
pub(crate) struct Lender {
    formats: Option<FormatCatalog>,
}

impl Lender {
    /// Reads the formats of the recording or folder in the options, if any.
    pub(crate) fn open(options: &SessionOptions) -> Result<Lender, Error> {
        let Some(path) = &options.formats else {
            return Ok(Lender::default());
        };
        if path.is_dir() {
            let formats = source::formats_of_dir(path)?;
            return Ok(Lender {
                formats: Some(formats),
            });
        }
        let limit = OpenOptions {
            spool_limit: options.spool_limit,
            ..OpenOptions::default()
        };
        let recording = RecordingBytes::open_with(path, limit)?;
        let name = format!("--formats {}", path.display());
        if !matches!(source::sniff(recording.bytes()), FileContent::Recording(_)) {
            return Err(Error::WrongKind {
                name,
                kind: sniff(recording.bytes()),
                wanted: InputPurpose::Formats,
            });
        }
        let reader = recording.reader(ReaderOptions::default())?;
        match reader.formats() {
            Some(formats) if !formats.all().is_empty() => Ok(Lender {
                formats: Some(formats.clone()),
            }),
            _ => Err(Error::Nothing {
                name,
                reason: "has no event formats to lend".to_owned(),
                wanted: InputPurpose::Formats,
            }),
        }
    }

    /// Returns the formats, if there are any to lend.
    pub(crate) fn formats(&self) -> Option<&FormatCatalog> {
        self.formats.as_ref()
    }
}
