//! Compresses the output; the method follows from the file's name, as in other tools.

use super::{ExportFormat, ExportOptions};
use mallow_profile::Profile;
use std::io::{self, Write};
use std::path::Path;

/// zstd's own default.
const ZSTD_LEVEL: i32 = 3;

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// None.
    Plain,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
}

impl Packing {
    /// Returns the compression for a file's name: `.gz`, `.zst`, or any other.
    pub fn of_path(path: &Path) -> Packing {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Packing::Gzip,
            Some("zst") => Packing::Zstd,
            _ => Packing::Plain,
        }
    }
}

/// As [`super::write`], compressed. A format that includes compression, as pprof does, is not compressed again.
///
/// # Errors
/// The errors of `out`.
pub fn write_packed(
    profile: &Profile,
    format: ExportFormat,
    options: &ExportOptions,
    packing: Packing,
    out: &mut dyn Write,
) -> io::Result<Vec<String>> {
    packed(format, packing, out, |out| super::write(profile, format, options, out))
}

/// Compresses what `write` writes.
pub(super) fn packed(
    format: ExportFormat,
    packing: Packing,
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> io::Result<Vec<String>>,
) -> io::Result<Vec<String>> {
    match packing {
        _ if format.is_packed() => write(out),
        Packing::Plain => write(out),
        Packing::Gzip => {
            let mut packed = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            let warnings = write(&mut packed)?;
            packed.finish().map(|_| warnings)
        }
        Packing::Zstd => {
            let mut packed = zstd::Encoder::new(out, ZSTD_LEVEL)?;
            let warnings = write(&mut packed)?;
            packed.finish().map(|_| warnings)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_profile::Measure;
    use std::io::Read;

    #[test]
    fn a_name_tells_the_packing() {
        let of = |name: &str| Packing::of_path(Path::new(name));
        assert_eq!(
            [of("a.gz"), of("a.json.zst"), of("a.json"), of("gz")],
            [Packing::Gzip, Packing::Zstd, Packing::Plain, Packing::Plain]
        );
    }

    #[test]
    fn what_is_packed_unpacks_to_the_same() {
        let (profile, options) = (Profile::default(), ExportOptions { measure: Measure::Bytes });
        let written = |packing| {
            let mut out = Vec::new();
            write_packed(&profile, ExportFormat::Massif, &options, packing, &mut out).unwrap();
            out
        };
        let plain = written(Packing::Plain);
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&written(Packing::Gzip)[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain);
        assert_eq!(zstd::decode_all(&written(Packing::Zstd)[..]).unwrap(), plain);
    }
}
