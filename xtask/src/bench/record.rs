//! The dated files: the tables for people, the single runs for whoever wants to compute again.

use super::measure::Sample;
use std::path::{Path, PathBuf};

/// Writes `STEM.csv` and `STEM.md` into `folder` and returns the second. A later run on the same day replaces an earlier one.
pub(super) fn write(folder: &Path, stem: &str, page: &str, csv: &str) -> Result<PathBuf, String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}.", folder.display()))?;
    let put = |ending: &str, text: &str| -> Result<PathBuf, String> {
        let path = folder.join(format!("{stem}.{ending}"));
        match std::fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(error) => Err(format!("{} cannot be written: {error}.", path.display())),
        }
    };
    put("csv", csv)?;
    put("md", page)
}

/// One line per run. Round 0 sampled memory and is in no time of the tables.
pub(super) fn csv(samples: &[Sample]) -> String {
    let mut text = String::from(
        "program,tool,round,wall_s,whole_s,cpu_s,own_cpu_s,trace_bytes,together_peak_bytes,\
         program_peak_bytes,threads,calls\n",
    );
    for sample in samples {
        let Sample { program, round, wall_s, whole_s, cpu_s, own_cpu_s, trace_bytes, .. } = sample;
        let tool = sample.tool.name();
        let peaks = sample.peaks.map_or_else(
            || ",,".to_owned(),
            |it| format!("{},{},{}", it.together_bytes, it.program_bytes, it.threads),
        );
        let calls = sample.events.map(|events| events.to_string()).unwrap_or_default();
        text.push_str(&format!(
            "{program},{tool},{round},{wall_s:.6},{whole_s:.6},{cpu_s:.6},{own_cpu_s:.2},{trace_bytes},{peaks},{calls}\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::metrics::tests::drifting_samples;
    use crate::bench::tools::Tool;

    #[test]
    fn every_run_is_a_line() {
        let text = csv(&drifting_samples());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 4 * Tool::ALL.len());
        assert_eq!(
            lines[2],
            "storm-10x1,mallow record,0,99.250000,99.250000,198.500000,0.50,2000,5000000,3000000,1,1000"
        );
        assert_eq!(lines[1 + Tool::ALL.len()], "storm-10x1,bare,1,1.000000,1.000000,2.000000,0.50,0,,,,");
    }
}
