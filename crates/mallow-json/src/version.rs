//! The document of `mallow version`, described by `docs/schema/version.json`.

use serde::Serialize;

/// `mallow version --json`.
#[derive(Serialize)]
pub struct VersionJson<'a> {
    /// Its name and version.
    pub schema: &'static str,
    /// Of the program.
    pub version: &'a str,
    /// What it was built from, where that is known.
    pub commit: Option<&'a str>,
    /// What it was built for, as rustc calls it.
    pub target: &'a str,
    /// Of the traces that it writes.
    pub trace_format: u32,
    /// Of the rules by which it counts.
    pub counting_version: u32,
    /// What is in it and could have been left out.
    pub features: &'a [&'a str],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema_tests::{assert_fits, check};
    use serde_json::json;

    #[test]
    fn a_version_has_the_published_shape() {
        let schema = serde_json::from_str(include_str!("../../../docs/schema/version.json")).unwrap();
        for commit in [Some("0123456789abcdef0123456789abcdef01234567"), None] {
            let document = VersionJson {
                schema: "mallow.version/1",
                version: "1.2.3",
                commit,
                target: "x86_64-unknown-linux-musl",
                trace_format: 1,
                counting_version: 2,
                features: &["soak"],
            };
            let mut document = serde_json::to_value(document).unwrap();
            assert_fits(&document, &schema);
            document["trace_format"] = json!("1");
            assert!(check(&document, &schema, &schema, "$").is_err());
        }
    }
}
