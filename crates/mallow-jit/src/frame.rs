//! What a runtime calls a function, as a frame of its language.
//!
//! V8 writes `JS:*fill /app/a.js:3:14`: its tier, the function's name and where its source begins (up to Node 18 `LazyCompile:`,
//! `Function:`, `Script:` or `Eval:` in place of `JS:`). HotSpot writes methods as `void app.Store.keep(int)`, and
//! `Interpreter` for all that it interprets. The lines are those of definitions: a map has no others.

use mallow_base::{Frame, Language};

/// What V8 puts before the name of a function of a script.
const V8_KINDS: [&str; 5] = ["JS:", "LazyCompile:", "Function:", "Script:", "Eval:"];
/// And behind it, by the tier that made the code: interpreted, baseline, two that optimise.
const V8_TIERS: [char; 4] = ['~', '^', '+', '*'];
/// How HotSpot calls the code of its interpreter.
const HOTSPOT_INTERPRETER: &str = "Interpreter";

/// The frame of a function of this name. One that is of no script that we know keeps its name as it is.
pub fn frame_of(name: &str) -> Frame {
    of_v8(name)
        .or_else(|| of_hotspot(name))
        .unwrap_or_else(|| Frame { function: name.to_owned(), ..Frame::default() })
}

fn of_v8(name: &str) -> Option<Frame> {
    let rest = V8_KINDS.iter().find_map(|kind| name.strip_prefix(kind))?;
    let rest = rest.strip_prefix(V8_TIERS).unwrap_or(rest);
    let (function, file, line) = match place(rest) {
        Some((before, line)) => {
            let (function, file) = split_file(before);
            let file = file.strip_prefix("file://").unwrap_or(file);
            (function, Some(file).filter(|file| !file.is_empty()), Some(line).filter(|line| *line > 0))
        }
        None => (rest.trim(), None, None),
    };
    let function = if function.is_empty() { "(anonymous)" } else { function };
    Some(Frame {
        function: function.to_owned(),
        file: file.map(str::to_owned),
        line: file.and(line),
        language: Language::JavaScript,
        ..Frame::default()
    })
}

/// What stands before `:LINE:COLUMN`, and the line.
fn place(text: &str) -> Option<(&str, u32)> {
    let (rest, column) = text.rsplit_once(':')?;
    let _: u32 = column.parse().ok()?;
    let (rest, line) = rest.rsplit_once(':')?;
    Some((rest, line.parse().ok()?))
}

/// A function's name and its file's, with a blank between them: either may have blanks of its own, but files begin in few ways.
fn split_file(text: &str) -> (&str, &str) {
    let begins = [" /", " file://", " node:"].into_iter().filter_map(|start| text.find(start)).min();
    let at = begins.or_else(|| text.rfind(' '));
    at.map_or((text, ""), |at| (text[..at].trim(), &text[at + 1..]))
}

/// `RESULT CLASS.METHOD(PARAMETERS)`: the result says nothing that tells methods apart.
fn of_hotspot(name: &str) -> Option<Frame> {
    let java = |function: &str| Frame {
        function: function.to_owned(),
        language: Language::Java,
        ..Frame::default()
    };
    if name == HOTSPOT_INTERPRETER {
        return Some(java("(interpreted)"));
    }
    let (before, parameters) = name.split_once('(')?;
    let (result, method) = before.split_once(' ')?;
    let is_word = |text: &str| !text.is_empty() && !text.contains([' ', ':', '/', '[', ']']);
    let is_method = parameters.ends_with(')') && method.contains('.') && is_word(method);
    (is_method && is_word(result.trim_end_matches("[]"))).then(|| java(&name[result.len() + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(name: &str) -> (String, String, u32) {
        let frame = frame_of(name);
        assert_eq!(frame.language, Language::JavaScript, "{name}");
        (frame.function, frame.file.unwrap_or_default(), frame.line.unwrap_or_default())
    }

    fn is(function: &str, file: &str, line: u32) -> (String, String, u32) {
        (function.into(), file.into(), line)
    }

    #[test]
    fn functions_of_scripts_have_their_file_and_line_whatever_their_tier() {
        for tier in V8_TIERS {
            assert_eq!(script(&format!("JS:{tier}fill /app/a.js:3:14")), is("fill", "/app/a.js", 3));
        }
        assert_eq!(script("LazyCompile:*get size /my app/a.js:2:108"), is("get size", "/my app/a.js", 2));
        assert_eq!(script("Script:~ file:///app/b.mjs:1:1"), is("(anonymous)", "/app/b.mjs", 1));
        assert_eq!(script("JS:~ /app/a.js:6:2"), is("(anonymous)", "/app/a.js", 6));
        let emit = "JS:^emit node:events:465:44";
        assert_eq!(script(emit), is("emit", "node:events", 465));
        assert_eq!(script("Function:~f evalmachine.<anonymous>:1:9"), is("f", "evalmachine.<anonymous>", 1));
        assert_eq!(script("JS:~f"), is("f", "", 0));
        assert_eq!(script("JS:*f :1:2"), is("f", "", 0));
    }

    #[test]
    fn methods_have_their_class_and_no_result() {
        let java = |name: &str| {
            let frame = frame_of(name);
            assert_eq!(frame.language, Language::Java, "{name}");
            frame.function
        };
        assert_eq!(java("void N.leak(int)"), "N.leak(int)");
        assert_eq!(
            java("java.lang.Object[] a.b.C$D.<init>(java.lang.Object, long)"),
            "a.b.C$D.<init>(java.lang.Object, long)"
        );
        assert_eq!(java("Interpreter"), "(interpreted)");
    }

    #[test]
    fn other_names_stay() {
        for name in [
            "Builtin:ArrayMap",
            "BytecodeHandler:Add",
            "StubRoutines (1)",
            "I2C/C2I adapters",
            "py::f:/app/a.py",
            "$lists:map/2",
            "void [System.Private.CoreLib] System.Foo::Bar(int32)[Optimized]",
            "",
        ] {
            let frame = frame_of(name);
            assert_eq!((frame.function.as_str(), frame.language), (name, Language::Native));
        }
    }
}
