//! One line of a stack as a person reads it.

use crate::bare_name::last_word;

/// What a frame's code is written in, as far as it matters: a script's frames come from its runtime, all others from machine code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    /// Machine code, whatever it was compiled from.
    #[default]
    Native,
    /// Python, as its interpreter tells.
    Python = 1,
    /// Ruby, likewise.
    Ruby = 2,
    /// JavaScript, as its runtime writes down what code it makes.
    JavaScript = 3,
    /// Java, and whatever else a JVM runs, in the same way.
    Java = 4,
}

impl Language {
    /// All of them.
    pub const ALL: [Language; 5] =
        [Language::Native, Language::Python, Language::Ruby, Language::JavaScript, Language::Java];

    /// What scripts call it; none for machine code.
    pub fn word(self) -> Option<&'static str> {
        match self {
            Language::Native => None,
            Language::Python => Some("python"),
            Language::Ruby => Some("ruby"),
            Language::JavaScript => Some("javascript"),
            Language::Java => Some("java"),
        }
    }
}

/// Its word, where documents hold it.
impl From<Language> for Option<String> {
    fn from(language: Language) -> Self {
        language.word().map(str::to_owned)
    }
}

/// A word that this mallow does not know is as good as none.
impl From<Option<String>> for Language {
    fn from(word: Option<String>) -> Self {
        Language::ALL.into_iter().find(|language| language.word() == word.as_deref()).unwrap_or_default()
    }
}

/// A function call in a stack: what symbols said about one address, or about one call inlined at it.
///
/// An address inside optimised code stands for several frames; all but the outermost of them are `inlined`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The demangled name, or `0x1234` (an address within `module`) where no symbol covers it.
    pub function: String,
    /// The source file as the compiler recorded it; none without line tables.
    pub file: Option<String>,
    /// The line in `file`, counted from 1.
    pub line: Option<u32>,
    /// The path of the executable or library that holds the code; none for code made at run time.
    pub module: Option<String>,
    /// True when the compiler inlined this call into the next frame outwards.
    pub inlined: bool,
    /// A script's language; [`Language::Native`] for machine code.
    pub language: Language,
}

/// What makes two frames the same line of code: everything but whether the call was inlined. A compiler inlines a function into one
/// caller and not into another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    module: Option<&'a str>,
}

/// What makes two frames one row of a table of places: where the line is known, one function there, whichever of its names it has and
/// whatever its generic arguments are. With line tables only, an inlined function has a shorter name than its symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceLine<'a>(Place<'a>);

impl Frame {
    /// Returns whether it is a frame of a script and not of machine code.
    pub fn is_script(&self) -> bool {
        self.language != Language::Native
    }

    /// The source line that this frame is at.
    pub fn source_line(&self) -> SourceLine<'_> {
        let place = self.place();
        let has_line = place.file.is_some() && place.line.is_some();
        SourceLine(Place {
            function: if has_line { last_word(place.function) } else { place.function },
            ..place
        })
    }

    /// The line of code that this frame is at.
    pub fn place(&self) -> Place<'_> {
        Place {
            function: &self.function,
            file: self.file.as_deref(),
            line: self.line,
            module: self.module.as_deref(),
        }
    }
}
