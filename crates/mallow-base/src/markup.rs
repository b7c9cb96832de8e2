//! Text within XML.

/// A text of which nothing is taken for markup. Lines stay lines; of other control characters XML has no way to write most.
pub fn escaped_xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' => safe.push('\n'),
            '\u{fffe}' | '\u{ffff}' => safe.push('?'),
            c if c.is_control() => safe.push('?'),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup_and_everything_can_be_written() {
        assert_eq!(escaped_xml("a<b> & \"c\"\n"), "a&lt;b&gt; &amp; &quot;c&quot;\n");
        assert_eq!(escaped_xml("\0\u{1b}\t\u{ffff}ü"), "????ü");
    }
}
