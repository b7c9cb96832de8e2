//! The width of text, and whether it has emphasis.

/// The number of columns if the terminal's width is not known.
pub const WIDTH_DEFAULT: usize = 80;

/// How a stream shows text.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether emphasis is used.
    pub colour: bool,
    /// The number of columns of a line.
    pub width: usize,
    /// Whether names of functions are never truncated, even if they are longer than a line.
    pub whole_names: bool,
}

impl Style {
    /// For tests and files: 80 columns, no emphasis.
    pub const PLAIN: Style = Style { colour: false, width: WIDTH_DEFAULT, whole_names: false };

    /// Returns the columns for the name of a function, if `taken` columns of the line are used.
    pub fn name_width(&self, taken: usize) -> usize {
        if self.whole_names { usize::MAX } else { self.width.saturating_sub(taken) }
    }

    /// Formats a heading.
    pub fn bold(&self, text: &str) -> String {
        self.wrapped("1", text)
    }

    /// Formats less important text.
    pub fn dim(&self, text: &str) -> String {
        self.wrapped("2", text)
    }

    fn wrapped(&self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_has_no_codes() {
        assert_eq!(Style::PLAIN.bold("x"), "x");
        assert_eq!(Style { colour: true, ..Style::PLAIN }.bold("x"), "\x1b[1mx\x1b[0m");
    }
}
