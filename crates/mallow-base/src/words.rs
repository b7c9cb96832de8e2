//! Enumerations whose values have a word each, which people type, files hold and pages show.

/// Lists the values of an enumeration with their words, in the order in which people see them: `ALL`, `word` and `of_word`.
#[macro_export]
macro_rules! words {
    ($name:ident { $($value:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            /// Every value, in the order in which they are shown.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$value),+];

            /// The word for it on the command line, in files and in JSON.
            pub const fn word(self) -> &'static str {
                match self {
                    $($name::$value => $word),+
                }
            }

            /// The value that a word stands for.
            pub fn of_word(word: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|value| value.word() == word)
            }
        }
    };
}
