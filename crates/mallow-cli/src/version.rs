//! `mallow version`: what a bug report has to contain.
//!
//! It must be the same for every build of a commit, so it has no date.

use crate::args::{LowVersion, TextOrJson};
use crate::destination::Destination;
use crate::exit_code;
use mallow_json::version::VersionJson;
use mallow_profile::COUNTING_VERSION;
use mallow_query::Failure;
use mallow_trace::TRACE_VERSION;

/// For `--version`: the version, and if it is known the commit.
pub(crate) const LINE: &str = env!("MALLOW_VERSION");
/// The commit that was checked out, in 40 digits; empty if it is not known.
const COMMIT: &str = env!("MALLOW_COMMIT");
const TARGET: &str = env!("MALLOW_TARGET");
const FEATURES: &[&str] = match (cfg!(feature = "open"), cfg!(feature = "soak")) {
    (true, true) => &["open", "soak"],
    (true, false) => &["open"],
    (false, true) => &["soak"],
    (false, false) => &[],
};

/// Prints it.
pub(crate) fn run(wanted: &LowVersion) -> Result<u8, Failure> {
    let document = VersionJson {
        schema: "mallow.version/1",
        version: env!("CARGO_PKG_VERSION"),
        commit: Some(COMMIT).filter(|commit| !commit.is_empty()),
        target: TARGET,
        trace_format: TRACE_VERSION,
        counting_version: COUNTING_VERSION,
        features: FEATURES,
    };
    let output = Destination::from(wanted.form.output.clone());
    match wanted.form.form() {
        TextOrJson::Json => output.json(&document)?,
        TextOrJson::Text => output.text(&lines(&document))?,
    }
    Ok(exit_code::FINE)
}

fn lines(document: &VersionJson<'_>) -> String {
    let features =
        if document.features.is_empty() { "none".to_owned() } else { document.features.join(", ") };
    let rows = [
        ("commit", document.commit.unwrap_or("unknown").to_owned()),
        ("target", document.target.to_owned()),
        ("trace format", document.trace_format.to_string()),
        ("counting rules", document.counting_version.to_string()),
        ("features", features),
    ];
    let rows: String = rows.iter().map(|(name, value)| format!("{name:<14}  {value}\n")).collect();
    format!("mallow {}\n{rows}", document.version)
}
