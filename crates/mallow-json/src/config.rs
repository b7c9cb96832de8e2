//! The document of `mallow config`, described by `docs/schema/config.json`.

use serde::Serialize;

/// `mallow config --json`.
#[derive(Serialize)]
pub struct ConfigJson<'a> {
    /// Its name and version.
    pub schema: &'static str,
    /// One for each flag that can be set.
    pub flags: &'a [FlagJson],
}

/// What a flag is when nobody types it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct FlagJson {
    /// Its long name.
    pub flag: &'static str,
    /// None where nothing sets it.
    pub value: Option<String>,
    /// The variable or the file that does.
    pub from: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema_tests::{assert_fits, check};
    use serde_json::json;

    #[test]
    fn settings_have_the_published_shape() {
        let schema = serde_json::from_str(include_str!("../../../docs/schema/config.json")).unwrap();
        let set = FlagJson { flag: "top", value: Some("3".into()), from: Some("MALLOW_TOP".into()) };
        let unset = FlagJson { flag: "width", value: None, from: None };
        let document = ConfigJson { schema: "mallow.config/1", flags: &[set, unset] };
        let mut document = serde_json::to_value(document).unwrap();
        assert_fits(&document, &schema);
        document["flags"][0]["value"] = json!(3);
        assert!(check(&document, &schema, &schema, "$").is_err());
    }
}
