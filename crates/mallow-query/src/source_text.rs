//! The source of functions, from where the compiler found it.

use mallow_view::AnnotatedFunction;
use std::path::Path;

/// No source file is longer.
const BYTES_MAX: u64 = 64 << 20;

/// A function with the lines of its file, or the sentence that says why there are none.
pub type WithSource<W> = (AnnotatedFunction<W>, Result<Vec<String>, String>);

/// Adds the source to functions.
pub fn with_source<W>(functions: Vec<AnnotatedFunction<W>>) -> Vec<WithSource<W>> {
    let with = |function: AnnotatedFunction<W>| {
        let source = read(function.file.as_deref());
        (function, source)
    };
    functions.into_iter().map(with).collect()
}

fn read(file: Option<&str>) -> Result<Vec<String>, String> {
    let Some(file) = file else {
        return Err(
            "Its source lines are not known; build it with -g, or install its debug package (-dbgsym)."
                .into(),
        );
    };
    let missing = |why: &str| {
        format!("The source is not at {file} on this machine ({why}), so only numbers of lines are shown.")
    };
    let found =
        std::fs::metadata(Path::new(file)).map_err(|error| missing(&crate::failure::reason(&error)))?;
    if !found.is_file() || found.len() > BYTES_MAX {
        return Err(missing("it is no source file"));
    }
    let bytes = std::fs::read(file).map_err(|error| missing(&crate::failure::reason(&error)))?;
    Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}
