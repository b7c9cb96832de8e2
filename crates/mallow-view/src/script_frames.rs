//! A script's frames and those of the interpreter that runs it: which of them are to be seen.
//!
//! Where a stack has a line of a script, what the interpreter does for it (its calls of itself, its objects, its start) is plumbing, inside of
//! the line and between two of them; code of other libraries is not. So is what a runtime runs of its own in the script's language: the calls of
//! Python's import, which the interpreter leaves out of its own stack traces, what Ruby carries within it, and what Node and the JDK call
//! internal. A stack without a script stays as it is.

use mallow_base::{Frame, Language};
use mallow_stacks::{Location, Stacks};

/// Which of the two are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScriptFrames {
    /// The script's, without the interpreter's around them.
    #[default]
    Folded,
    /// Both.
    All,
    /// The interpreter's alone: native stacks.
    LeftOut,
}

/// Functions of the interpreter, wherever they lie: a program may have it built in.
const INTERPRETER: [&str; 8] = [
    "_PyEval_",
    "PyEval_",
    "_PyObject_",
    "PyObject_",
    "_PyFunction_Vectorcall",
    "PyRun_",
    "rb_vm_",
    "vm_exec",
];

/// The folder of Python's own extension modules; which of them are built in differs between distributions.
const OWN_MODULES: &str = "/lib-dynload/";

/// Runtimes with a JIT compiler, and the libraries of a JDK between a method and its allocations.
const RUNTIMES: [&str; 10] = [
    "node",
    "nodejs",
    "libjvm.so",
    "libjli.so",
    "libjava.so",
    "libnio.so",
    "libnet.so",
    "libzip.so",
    "libjimage.so",
    "libverify.so",
];

/// Names of a runtime's own generated or copied code.
const MADE: [&str; 9] = [
    "Builtin:",
    "BytecodeHandler:",
    "Stub",
    "I2C/C2I",
    "RuntimeStub",
    "VtableBlob",
    "MethodHandlesAdapterBlob",
    // A trampoline of `python -X perf`.
    "py::",
    "0x",
];

/// Files of Python's import system, whose calls are between a module and the line that imports it, Node's of the same
/// kind, and Ruby's internal ones, `require` among them.
const OWN_FILES: [&str; 3] = ["<frozen importlib._bootstrap", "node:internal/", "<internal:"];

/// Packages of the JDK that programs do not call directly.
const OWN_PACKAGES: [&str; 2] = ["jdk.internal.", "sun."];

/// Returns whether a frame is a script's, and not of the interpreter's own.
fn is_of_script(frame: &Frame) -> bool {
    frame.is_script() && !is_own_script(frame)
}

fn is_own_script(frame: &Frame) -> bool {
    let begins = |text: &str, with: &[&str]| with.iter().any(|start| text.starts_with(start));
    frame.is_script() && frame.file.as_ref().is_some_and(|file| begins(file, &OWN_FILES))
        || frame.language == Language::Java && begins(&frame.function, &OWN_PACKAGES)
}

/// Returns whether a library belongs to Ruby itself: `lib/ruby/3.1.0/x86_64-linux/json/ext/parser.so`, and not to a
/// gem.
fn is_own_of_ruby(path: &str) -> bool {
    let behind = path.split("/ruby/").nth(1);
    behind.is_some_and(|behind| behind.starts_with(|first: char| first.is_ascii_digit()))
}

/// Returns whether a frame is of a language's interpreter.
fn is_interpreter(frame: &Frame) -> bool {
    let path = frame.module.as_deref().unwrap_or_default();
    let module = path.rsplit('/').next().unwrap_or(path);
    let is_letter = |next: char| next.is_alphabetic() || next == '_';
    let is_its_module =
        ["python", "libpython", "libruby", "libnode.so"].iter().any(|name| module.starts_with(name))
            || module.strip_prefix("ruby").is_some_and(|behind| !behind.starts_with(is_letter))
            || RUNTIMES.contains(&module)
            || path.contains(OWN_MODULES)
            || is_own_of_ruby(path);
    let begins = |names: &[&str]| names.iter().any(|name| frame.function.starts_with(name));
    let is_native = frame.language == Language::Native;
    let is_made = frame.module.is_none() && begins(&MADE);
    is_own_script(frame) || is_native && (is_its_module || is_made || begins(&INTERPRETER))
}

impl ScriptFrames {
    /// Takes the others out of all stacks. A stack that begins with one of them becomes that of its caller, under its own number.
    pub fn keep_in(self, stacks: &mut Stacks) {
        let mut frames = stacks.locations.iter().flat_map(|location| &location.frames);
        if self == ScriptFrames::All || !frames.any(Frame::is_script) {
            return;
        }
        let is = |test: fn(&Frame) -> bool| {
            move |location: &Location| location.frames.iter().all(test) && !location.frames.is_empty()
        };
        let all = |test: fn(&Frame) -> bool| stacks.locations.iter().map(is(test)).collect::<Vec<bool>>();
        let script = all(Frame::is_script);
        let interpreter = all(is_interpreter);
        let of_script = all(is_of_script);
        // For each node: whether it or a caller of it is a script's.
        let mut has_script = vec![false; stacks.nodes.len()];
        for at in 0..stacks.nodes.len() {
            let node = stacks.nodes[at];
            let parent = node.parent.map(|parent| parent.0 as usize);
            let location = node.location.0 as usize;
            let below_script = parent.is_some_and(|parent| has_script[parent]);
            has_script[at] = below_script || of_script[location];
            let is_hidden = match self {
                ScriptFrames::LeftOut => script[location],
                _ => below_script && interpreter[location],
            };
            match parent {
                Some(parent) if is_hidden => stacks.nodes[at] = stacks.nodes[parent],
                // What started the interpreter, up to the program that it is built into.
                Some(_) if self == ScriptFrames::Folded && of_script[location] && !below_script => {
                    let mut outside = node.parent;
                    while let Some(id) =
                        outside.filter(|id| interpreter[stacks.node(*id).location.0 as usize])
                    {
                        outside = stacks.node(id).parent;
                    }
                    stacks.nodes[at].parent = outside;
                }
                _ => {}
            }
        }
    }
}

/// The frames of a stack, innermost first, without the interpreter's around those of a script.
pub fn without_interpreter<'a>(frames: impl Iterator<Item = &'a Frame>) -> Vec<&'a Frame> {
    let mut frames: Vec<&Frame> = frames.collect();
    let Some(outermost) = frames.iter().rposition(|frame| is_of_script(frame)) else { return frames };
    let start = frames[outermost + 1..].iter().take_while(|frame| is_interpreter(frame)).count();
    let end = outermost + 1 + start;
    let mut at = 0;
    frames.retain(|frame| {
        at += 1;
        at > end || !is_interpreter(frame)
    });
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_stacks::{Address, StackId, StacksBuilder};

    fn frame(name: &str) -> Frame {
        let (function, place) = name.split_once('@').unwrap_or((name, ""));
        let is_script = place.ends_with(".py") || place.ends_with(".rb");
        Frame {
            function: function.to_owned(),
            file: is_script.then(|| place.to_owned()),
            module: (!is_script && !place.is_empty()).then(|| place.to_owned()),
            language: match place.rsplit_once('.') {
                Some((_, "py")) => Language::Python,
                Some((_, "rb")) => Language::Ruby,
                _ => Language::Native,
            },
            ..Frame::default()
        }
    }

    /// Stacks, each outermost first with blanks between frames, as they are seen, innermost first.
    fn seen(scripts: ScriptFrames, given: &[&str]) -> Vec<String> {
        let mut builder = StacksBuilder::default();
        let ids: Vec<Option<StackId>> = given
            .iter()
            .map(|stack| {
                let frames = stack.split(' ').map(|name| vec![frame(name)]);
                let locations: Vec<_> =
                    frames.map(|frames| builder.location(Address::Unknown, frames)).collect();
                builder.stack(locations)
            })
            .collect();
        let mut stacks = builder.finish();
        let whole = |stacks: &Stacks, id| stacks.frames(id).cloned().collect::<Vec<Frame>>();
        let lists: Vec<Vec<Frame>> = ids.iter().map(|id| whole(&stacks, *id)).collect();
        scripts.keep_in(&mut stacks);
        let names = |frames: &[Frame]| {
            frames.iter().map(|frame| frame.function.as_str()).collect::<Vec<&str>>().join(" ")
        };
        let seen: Vec<String> = ids.iter().map(|id| names(&whole(&stacks, *id))).collect();
        if scripts == ScriptFrames::Folded {
            for (list, seen) in lists.iter().zip(&seen) {
                let frames: Vec<Frame> = without_interpreter(list.iter()).into_iter().cloned().collect();
                assert_eq!(&names(&frames), seen);
            }
        }
        seen
    }

    const PYTHON: &str = "_start@/usr/bin/python3.11 Py_Main@/usr/bin/python3.11";

    #[test]
    fn the_interpreter_is_plumbing_around_a_script_and_nowhere_else() {
        let run = format!("{PYTHON} _PyEval_EvalFrameDefault@/usr/bin/python3.11");
        let given = [
            format!("{run} main@app.py PyUnicode_New@/usr/bin/python3.11"),
            format!(
                "{run} main@app.py call@/usr/bin/python3.11 array_new@/lib/numpy.so PyObject_Call@x f@app.py scan@/usr/lib/python3.11/lib-dynload/_json.so strdup@/lib/libc.so.6"
            ),
            format!("{run} main@app.py"),
            format!("{PYTHON} init@/usr/bin/python3.11"),
            "main@/bin/app run@/bin/app PyRun_String@/lib/libpython3.11.so.1.0 work@job.py g@/usr/lib/libpython3.11.so.1.0".to_owned(),
        ];
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        let folded = ["main", "strdup f array_new main", "main", "init Py_Main _start", "work run main"];
        assert_eq!(seen(ScriptFrames::Folded, &given), folded);
        let native = seen(ScriptFrames::LeftOut, &given);
        assert_eq!(native[0], "PyUnicode_New _PyEval_EvalFrameDefault Py_Main _start");
        assert_eq!(native[2], "_PyEval_EvalFrameDefault Py_Main _start");
        assert_eq!(seen(ScriptFrames::All, &given)[4], "g work PyRun_String run main");
    }

    #[test]
    fn rubys_own_libraries_and_the_code_that_it_makes_are_plumbing() {
        let lib = "/usr/lib/x86_64-linux-gnu";
        let given = [
            format!(
                "_start@/usr/bin/ruby3.1 run@{lib}/libruby-3.1.so.3.1 main@app.rb exec@{lib}/libruby-3.1.so.3.1 row@app.rb parse@{lib}/ruby/3.1.0/json/ext/parser.so"
            ),
            "main@app.rb 0x7f544be9875e row@app.rb 0x7f544be98800 rb_str_times@/opt/ruby/bin/ruby".to_owned(),
            format!(
                "main@app.rb call@{lib}/ruby/vendor_ruby/3.1.0/nokogiri.so xmlParse@{lib}/libxml2.so 0x10"
            ),
            "main@app.rb work@/srv/ruby_tools".to_owned(),
            "main@app.py py::main:/app.py row@app.py py::row:/app.py".to_owned(),
        ];
        let given: Vec<&str> = given.iter().map(String::as_str).collect();
        let folded = ["row main", "row main", "xmlParse call main", "work main", "row main"];
        assert_eq!(seen(ScriptFrames::Folded, &given), folded);
    }

    #[test]
    fn the_calls_of_an_import_are_plumbing_between_two_lines() {
        let import =
            |name: &str| Frame { file: Some(format!("{}>", OWN_FILES[0])), ..frame(&format!("{name}@x.py")) };
        let frames = [frame("body@b.py"), import("exec"), import("find"), frame("main@a.py")];
        let seen = |frames: &[Frame]| {
            let seen = without_interpreter(frames.iter());
            seen.iter().map(|frame| frame.function.clone()).collect::<Vec<String>>()
        };
        assert_eq!(seen(&frames), ["body", "main"]);
        assert_eq!(seen(&frames[1..]), ["main"]);
        // Where nothing imports, it is all that there is.
        assert_eq!(seen(&frames[1..3]), ["exec", "find"]);
        assert_eq!(seen(&frames[..3]), ["body"]);
    }

    #[test]
    fn runtimes_that_make_code_are_plumbing_around_it() {
        let script = |name: &str, file: &str, language| Frame {
            function: name.into(),
            file: Some(file.into()).filter(|file: &String| !file.is_empty()),
            language,
            ..Frame::default()
        };
        let (js, java) = (Language::JavaScript, Language::Java);
        let seen = |frames: &[Frame]| {
            without_interpreter(frames.iter())
                .iter()
                .map(|frame| frame.function.clone())
                .collect::<Vec<String>>()
        };
        let node = [
            frame("node::NewBuffer@/usr/bin/node"),
            frame("Builtin:HandleApiCall"),
            frame("0x7f54a77f1140"),
            script("allocUnsafeSlow", "node:buffer", js),
            script("keep", "/app/a.js", js),
            script("Module._compile", "node:internal/modules/cjs/loader", js),
            script("main", "/app/main.js", js),
            frame("Builtin:JSEntry"),
            frame("node::Start@/usr/bin/node"),
            frame("__libc_start_main@/lib/libc.so.6"),
        ];
        assert_eq!(seen(&node), ["allocUnsafeSlow", "keep", "main", "__libc_start_main"]);
        let jvm = [
            frame("os::malloc@/opt/jdk/lib/server/libjvm.so"),
            script("jdk.internal.misc.Unsafe.allocateMemory0(long)", "", java),
            script("java.nio.DirectByteBuffer.<init>(int)", "", java),
            script("N.leak(int)", "", java),
            frame("StubRoutines (1)"),
            frame("JavaMain@/opt/jdk/lib/libjli.so"),
            frame("start_thread@/lib/libc.so.6"),
        ];
        assert_eq!(seen(&jvm), ["java.nio.DirectByteBuffer.<init>(int)", "N.leak(int)", "start_thread"]);
    }

    #[test]
    fn a_script_that_is_a_whole_stack_stays() {
        assert_eq!(seen(ScriptFrames::LeftOut, &["main@app.py"]), ["main"]);
        assert_eq!(seen(ScriptFrames::Folded, &["main@app.py"]), ["main"]);
    }
}
