//! The document of `mallow stat`, described by `docs/schema/stat.json`.

use crate::parts::{ExitJson, TotalsJson};
use mallow_profile::Process;
use serde::Serialize;

/// `mallow stat --json`.
#[derive(Serialize)]
pub struct StatJson {
    /// Its name and version.
    pub schema: &'static str,
    /// What was run.
    pub command: Vec<String>,
    /// Each run of it.
    pub runs: Vec<RunJson>,
    /// Whether all runs counted the same.
    pub equal_counts: bool,
    /// Whether every process was counted, and every call of each.
    pub complete: bool,
    /// What was missed.
    pub warnings: Vec<String>,
}

/// One run of `mallow stat`.
#[derive(Serialize)]
pub struct RunJson {
    /// How it ended.
    pub exit: Option<ExitJson>,
    /// How long it took.
    pub wall_us: u64,
    /// Its metrics; none where nothing was counted.
    pub totals: Option<TotalsJson>,
    /// The bound of the peak's error.
    pub peak_error_bytes: u64,
    /// The processes that were counted.
    pub processes: Vec<OwnedProcessJson>,
}

/// A process of `mallow stat`, whose run is over when it is written.
#[derive(Serialize)]
pub struct OwnedProcessJson {
    pid: u32,
    command: String,
    exit: Option<ExitJson>,
    totals: TotalsJson,
}

impl From<Process> for OwnedProcessJson {
    fn from(process: Process) -> Self {
        Self {
            pid: process.pid,
            exit: process.exit.map(ExitJson::from),
            totals: (&process.totals).into(),
            command: process.command,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema_tests::{assert_fits, check};
    use mallow_profile::Exit;
    use mallow_samples::profile as sample;
    use serde_json::json;

    #[test]
    fn stat_has_the_published_shape() {
        let schema = serde_json::from_str(include_str!("../../../docs/schema/stat.json")).unwrap();
        let profile = sample::python();
        let run = RunJson {
            peak_error_bytes: 0,
            exit: Some(Exit::Status(0).into()),
            wall_us: 5,
            totals: Some((&profile.totals()).into()),
            processes: profile.processes.into_iter().map(OwnedProcessJson::from).collect(),
        };
        let command = vec!["true".to_owned()];
        let document = StatJson {
            schema: "mallow.stat/1",
            command,
            runs: vec![run],
            equal_counts: true,
            complete: true,
            warnings: vec![],
        };
        let mut document = serde_json::to_value(document).unwrap();
        assert_fits(&document, &schema);
        document["runs"][0]["totals"] = json!(null);
        assert_fits(&document, &schema);
        document["equal_counts"] = json!(1);
        assert!(check(&document, &schema, &schema, "$").is_err());
    }
}
