//! Programs that the hooks cannot see, although they run.
//!
//! A preloaded `malloc` is found before every library's, and never before the executable's own. A program that was
//! linked with an allocator calls that one directly, so its counts would be 0 or nearly so, which looks like a great win.

use object::{Object, ObjectSymbol};
use std::path::Path;

/// Functions that only an allocator defines, with its name.
const OWN: [(&str, &str); 8] = [
    ("malloc", "an allocator"),
    ("mi_malloc", "mimalloc"),
    ("je_malloc", "jemalloc"),
    ("_rjem_malloc", "jemalloc"),
    ("tc_malloc", "tcmalloc"),
    ("rpmalloc", "rpmalloc"),
    ("sn_malloc", "snmalloc"),
    ("scalable_malloc", "TBB's allocator"),
];

/// The sentence about an executable that brings its own allocator; none when it does not, or is no executable.
pub(crate) fn by_own_allocator(program: &Path) -> Option<String> {
    let bytes = std::fs::read(program).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let defines = |wanted: &str| {
        file.dynamic_symbols()
            .chain(file.symbols())
            .any(|symbol| symbol.is_definition() && symbol.name() == Ok(wanted))
    };
    let (_, allocator) = OWN.into_iter().find(|(function, _)| defines(function))?;
    Some(format!(
        "The program is linked with {allocator} and calls it directly, where mallow's hooks do not see it: these counts are \
         not its own. Link the allocator as a library, or build the test without it."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn built(source: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let (c, program) = (folder.path().join("own.c"), folder.path().join("own"));
        std::fs::write(&c, source).unwrap();
        let status = Command::new("cc").arg("-o").arg(&program).arg(&c).status().unwrap();
        assert!(status.success());
        by_own_allocator(&program)
    }

    #[test]
    fn a_program_that_defines_malloc_is_told_from_one_that_calls_it() {
        assert_eq!(built("#include <stdlib.h>\nint main(void) { free(malloc(1)); return 0; }"), None);
        let own = "#include <stddef.h>\nvoid *mi_malloc(size_t n) { (void)n; return 0; }\nint main(void) { return !!mi_malloc(1); }";
        assert!(built(own).unwrap().starts_with("The program is linked with mimalloc and calls it directly"));
    }
}
