//! Templates with `{name}` in them, which is replaced by a value.

use std::fmt::Write as _;

/// How a value is encoded where it is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Unchanged.
    Raw,
    /// For paths, queries and forms: letters, digits, `-`, `.`, `_` and `~` as they are, everything else as `%` and two digits.
    Percent,
    /// Inside the quotes of a JSON string.
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    /// The index of a value.
    Value(usize),
}

/// A template: text, and the positions of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pieces: Vec<Piece>,
    encoding: Encoding,
}

impl Text {
    /// Returns an empty template.
    pub(crate) fn empty() -> Text {
        Text { pieces: Vec::new(), encoding: Encoding::Raw }
    }

    /// Parses a template; `place_of` returns the index of a value. `{{` is a brace. Braces around anything that
    /// cannot be a name are plain text: JSON has many of them.
    ///
    /// # Errors
    /// The name of an unknown value.
    pub(crate) fn parse(
        text: &str,
        encoding: Encoding,
        place_of: &dyn Fn(&str) -> Option<usize>,
    ) -> Result<Text, String> {
        let mut read = Text { pieces: Vec::new(), encoding };
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, behind) = rest.split_at(at);
            read.push(before);
            rest = &behind[1..];
            if let Some(escaped) = rest.strip_prefix('{') {
                read.push("{");
                rest = escaped;
                continue;
            }
            match rest.split_once('}').filter(|(name, _)| is_name(name)) {
                Some((name, behind)) => {
                    let place = place_of(name).ok_or_else(|| name.to_owned())?;
                    read.pieces.push(Piece::Value(place));
                    rest = behind;
                }
                None => read.push("{"),
            }
        }
        read.push(rest);
        Ok(read)
    }

    /// Encodes the fields of a form, each a name and a template with the encoding [`Encoding::Raw`].
    pub(crate) fn form(fields: &[(String, Text)]) -> Text {
        let mut form = Text { pieces: Vec::new(), encoding: Encoding::Percent };
        for (index, (name, value)) in fields.iter().enumerate() {
            let separator = if index == 0 { "" } else { "&" };
            form.push(&format!("{separator}{}=", percent(name)));
            for piece in &value.pieces {
                match piece {
                    Piece::Literal(literal) => form.push(&percent(literal)),
                    Piece::Value(place) => form.pieces.push(Piece::Value(*place)),
                }
            }
        }
        form
    }

    fn push(&mut self, literal: &str) {
        match self.pieces.last_mut() {
            _ if literal.is_empty() => {}
            Some(Piece::Literal(last)) => last.push_str(literal),
            _ => self.pieces.push(Piece::Literal(literal.to_owned())),
        }
    }

    /// Returns the text with its values inserted; `None` if one is not known.
    pub(crate) fn filled(&self, values: &[Option<String>]) -> Option<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Value(place) => {
                    let value = values.get(*place)?.as_deref()?;
                    match self.encoding {
                        Encoding::Raw => text.push_str(value),
                        Encoding::Percent => text.push_str(&percent(value)),
                        Encoding::Json => {
                            let quoted = serde_json::to_string(value).ok()?;
                            text.push_str(quoted.strip_prefix('"')?.strip_suffix('"')?);
                        }
                    }
                }
            }
        }
        Some(text)
    }
}

/// Returns whether this is a name: letters, digits and `_`, not starting with a digit.
pub(crate) fn is_name(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !text.is_empty() && text.chars().all(is_part) && !text.starts_with(|letter: char| letter.is_ascii_digit())
}

fn percent(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, encoding: Encoding) -> Result<Text, String> {
        Text::parse(text, encoding, &|name| ["user", "token"].iter().position(|known| *known == name))
    }

    fn filled(text: &str, encoding: Encoding) -> String {
        let values = [Some("7".to_owned()), Some("a b\"/ü".to_owned())];
        parsed(text, encoding).unwrap().filled(&values).unwrap()
    }

    #[test]
    fn values_are_put_in_as_their_place_wants_them() {
        assert_eq!(filled("/u/{user}?t={token}", Encoding::Percent), "/u/7?t=a%20b%22%2F%C3%BC");
        assert_eq!(filled("Bearer {token}", Encoding::Raw), "Bearer a b\"/ü");
        assert_eq!(filled(r#"{"t":"{token}","n":{}}"#, Encoding::Json), r#"{"t":"a b\"/ü","n":{}}"#);
        assert_eq!(filled("{{user} {", Encoding::Raw), "{user} {");
        assert_eq!(filled("{1} { user } {a-b}", Encoding::Raw), "{1} { user } {a-b}");
    }

    #[test]
    fn a_form_is_encoded_whole() {
        let field = |name: &str, value: &str| (name.to_owned(), parsed(value, Encoding::Raw).unwrap());
        let form = Text::form(&[field("a b", "x&y"), field("t", "-{token}")]);
        let values = [None, Some("1=2".to_owned())];
        assert_eq!(form.filled(&values).as_deref(), Some("a%20b=x%26y&t=-1%3D2"));
    }

    #[test]
    fn what_nobody_knows_is_named_and_what_is_missing_is_not_guessed() {
        assert_eq!(parsed("/{tokn}", Encoding::Raw), Err("tokn".to_owned()));
        assert_eq!(parsed("/{token}", Encoding::Raw).unwrap().filled(&[None, None]), None);
    }
}
