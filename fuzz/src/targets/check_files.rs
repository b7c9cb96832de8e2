//! Any bytes given to the readers of the gate's files (manifest, baseline, report, SwiftNIO's logs and thresholds), and of a benchmark's result, end in
//! what they hold or in one named error: never a panic. The first byte chooses the reader.

use super::said::said;
use mallow_check::manifest::Manifest;
use mallow_gate::baseline::Baseline;
use mallow_gate::nio::{Thresholds, check, read_log};
use mallow_json::bench::BenchJson;
use mallow_json::check::ReportFile;
use std::path::Path;

pub(super) fn check_files(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match choice % 6 {
        0 => said(Manifest::parse(text, Path::new("mallow.toml"), Path::new("/suite")).err()),
        1 => match Baseline::from_text(text, "baseline.json") {
            // What was read is written and read again as the same.
            Ok(baseline) => {
                assert_eq!(Baseline::from_text(&baseline.to_text(), "again").ok(), Some(baseline))
            }
            Err(error) => said(Some(error)),
        },
        2 => match ReportFile::from_text(text, "report.json") {
            Ok(report) => said(report.to_result().err()),
            Err(error) => said(Some(error)),
        },
        5 => {
            // An earlier benchmark is held against a later one, whatever its runs say.
            if let Ok(session) = BenchJson::read(text) {
                let _ = BenchJson::of(&session, &[]).text();
            }
        }
        3 => said(Thresholds::from_text(text, "thresholds.json").err()),
        _ => {
            let log = read_log(text);
            let _ = check(&log.tests, &Thresholds::of_log(&log.tests));
        }
    }
}
