//! Which frames are the user's own: code of the project, and not of a library, a language's runtime or an interpreter.
//!
//! Where a stack is cut, these are kept. What decides is where the code lies, not what it is called.

use mallow_base::Frame;

/// Folders in which sources of others lie.
const OTHERS: [&str; 13] = [
    "/rustc/",
    "/library/std/src/",
    "/library/core/src/",
    "/library/alloc/src/",
    "/registry/src/",
    "/git/checkouts/",
    "/usr/include/",
    "/include/c++/",
    "/usr/src/",
    "/site-packages/",
    "/dist-packages/",
    "/node_modules/",
    "/lib/python3",
];

/// Beginnings of executables' names that run programs of others.
const INTERPRETERS: [&str; 5] = ["python", "ruby", "node", "perl", "php"];

/// Returns whether a frame is of the project: in its executable, with a source that is no library's, and no start of a program.
pub fn is_own(frame: &Frame) -> bool {
    // Valgrind writes `library/alloc/src/alloc.rs`.
    let is_of_others = |file: &String| {
        file.starts_with("library/")
            || file.starts_with("<frozen ")
            || OTHERS.iter().any(|folder| file.contains(folder))
    };
    let module = frame.module.as_deref().unwrap_or_default();
    let module = module.rsplit('/').next().unwrap_or(module);
    let is_library = module.ends_with(".so") || module.contains(".so.");
    // Tools that write a line often write no module.
    let is_nowhere = module.is_empty() && frame.file.is_none();
    let is_interpreter = INTERPRETERS.iter().any(|name| module.starts_with(name));
    !is_library
        && !is_nowhere
        && !is_interpreter
        && !frame.file.as_ref().is_some_and(is_of_others)
        && crate::plumbing::leaf_rule(frame).is_none()
        && crate::plumbing::root_rule(frame).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_the_executable_is_own_and_that_of_libraries_is_not() {
        let frame = |function: &str, file: &str, module: &str| Frame {
            function: function.to_owned(),
            file: (!file.is_empty()).then(|| file.to_owned()),
            module: Some(module.to_owned()),
            ..Frame::default()
        };
        for own in [
            frame("parse", "src/parse.c", "/srv/demo/bench"),
            frame("parse", "", "/srv/demo/bench"),
            frame("main", "/srv/demo/src/main.rs", "bench"),
            frame("count", "words.rs", ""),
        ] {
            assert!(is_own(&own), "{own:?}");
        }
        for other in [
            frame("parse", "src/parse.c", "/usr/lib/libz.so.1"),
            frame("to_vec", "/home/me/.cargo/registry/src/index/serde_json-1/src/ser.rs", "/srv/demo/bench"),
            frame("grow", "/rustc/0123/library/alloc/src/raw_vec.rs", "/srv/demo/bench"),
            frame("grow", "library/alloc/src/raw_vec.rs", ""),
            frame("malloc", "", "/srv/demo/bench"),
            frame("_start", "", "/srv/demo/bench"),
            frame("_PyEval_EvalFrameDefault", "", "/usr/bin/python3.11"),
            Frame::default(),
        ] {
            assert!(!is_own(&other), "{other:?}");
        }
    }
}
