//! What the libraries that enter other programs ask of them, and what they offer.
//!
//! Each is loaded before everything else into programs that we know nothing about. So it may need no library, no
//! symbol version and no dynamic thread-local storage (whose first access allocates), and it may export exactly
//! the names in its `exports.txt`: one name too many takes a function away from the program.

use crate::run;
use crate::workspaces;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A library, by its crate and its file.
struct Library {
    folder: &'static str,
    file: &'static str,
    /// A function of its own, by which it is known that names can be read.
    function: &'static str,
    has_exchange: bool,
    /// Where the guide tells the user of each function that it stands in front of.
    page: Option<&'static str>,
}

const LIBRARIES: [Library; 2] = [
    Library {
        folder: "recorder/mallow-preload",
        file: "libmallow_preload.so",
        function: "invariant_broke",
        has_exchange: true,
        page: Some("docs/guide/recorder.md"),
    },
    Library {
        folder: "recorder/mallow-timers",
        file: "libmallow_timers.so",
        function: "on_signal",
        has_exchange: false,
        page: None,
    },
];

/// What it may ask of the program: what every libc has, and weak names that need not be there.
const ASKED_FOR: [&str; 14] = [
    "_ITM_deregisterTMCloneTable",
    "_ITM_registerTMCloneTable",
    "__cxa_finalize",
    "__gmon_start__",
    "_dl_find_object",
    "_r_debug",
    "bcmp",
    "dl_iterate_phdr",
    "environ",
    "memcpy",
    "memmove",
    "memset",
    "on_exit",
    "strlen",
];

/// Builds the libraries and checks them.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let workspaces = workspaces::all(root)?;
    let recorder = workspaces
        .iter()
        .find(|workspace| workspace.folder == Path::new("recorder"))
        .ok_or("recorder/Cargo.toml is missing: there is no library to check.")?;
    // As `crates/mallow-cli/build.rs` builds them, which finds them there.
    let target = run::captured(Command::new("rustc").args(["--print", "host-tuple"]))?;
    let packages = ["mallow-preload", "mallow-timers", "mallow-spawner"].map(|name| ["--package", name]);
    let mut build = recorder.cargo(root, "build");
    build.args(["--release", "--locked", "--target", target.trim()]).args(packages.as_flattened());
    run::shown(&mut build)?;
    let folder = recorder.target_folder(root)?.join(target.trim()).join("release");
    LIBRARIES.iter().try_for_each(|library| library.check(root, &folder.join(library.file)))
}

impl Library {
    fn exports(&self) -> String {
        format!("{}/exports.txt", self.folder)
    }

    fn check(&self, root: &Path, file: &Path) -> Result<(), String> {
        let exports = self.exports();
        let allowed = std::fs::read_to_string(root.join(&exports))
            .map_err(|error| format!("{exports} cannot be read: {error}."))?;
        let mut broken = broken_promises(&Facts::of(file)?, &names_in(&allowed), &exports);
        if let Some(page) = self.page {
            let text = std::fs::read_to_string(root.join(page));
            let text = text.map_err(|error| format!("{page} cannot be read: {error}."))?;
            broken.extend(not_documented(&names_in(&allowed), &text, page));
        }
        if self.has_exchange {
            let mut objdump = Command::new("objdump");
            objdump.args(["--disassemble", "--no-show-raw-insn", "-M", "intel"]).arg(file).env("LC_ALL", "C");
            broken.extend(wrong_exchanges(&run::captured(&mut objdump)?));
        }
        let mut nm = Command::new("nm");
        nm.args(["--defined-only", "--format=posix"]).arg(file).env("LC_ALL", "C");
        broken.extend(ways_to_panic(&run::captured(&mut nm)?, self.function));
        if broken.is_empty() {
            println!("    {} keeps its promises", file.display());
            return Ok(());
        }
        Err(format!("{} breaks its promises:\n  {}", file.display(), broken.join("\n  ")))
    }
}

/// What `readelf` says of a library, as far as the promises are concerned.
struct Facts {
    needed: Vec<String>,
    version_needs: Vec<String>,
    exported: BTreeSet<String>,
    undefined: BTreeSet<String>,
}

impl Facts {
    fn of(library: &Path) -> Result<Facts, String> {
        let read = |flags: &[&str]| {
            run::captured(Command::new("readelf").args(flags).arg(library).env("LC_ALL", "C"))
        };
        let (exported, undefined) = symbols(&read(&["--dyn-syms", "--wide"])?);
        if exported.is_empty() {
            return Err(format!("readelf sees no exported symbol in {}.", library.display()));
        }
        Ok(Facts {
            needed: needed(&read(&["--dynamic", "--wide"])?),
            version_needs: version_needs(&read(&["--version-info", "--wide"])?),
            exported,
            undefined,
        })
    }
}

fn broken_promises(facts: &Facts, allowed: &BTreeSet<String>, exports: &str) -> Vec<String> {
    let mut broken = Vec::new();
    for name in &facts.needed {
        broken.push(format!("it needs {name}; it may need no library (DT_NEEDED)."));
    }
    for version in &facts.version_needs {
        broken.push(format!("it needs the symbol version {version}; it may need none."));
    }
    if facts.undefined.contains("__tls_get_addr") {
        broken.push("it calls __tls_get_addr; thread-local state must be initial-exec.".to_owned());
    }
    for name in facts.undefined.iter().filter(|name| !ASKED_FOR.contains(&name.as_str())) {
        broken.push(format!("it refers to {name}, which a program need not have."));
    }
    for name in facts.exported.difference(allowed) {
        broken.push(format!("it exports {name}, which is not in {exports}; hide it or add the line."));
    }
    for name in allowed.difference(&facts.exported) {
        broken.push(format!("it does not export {name}, which is in {exports}."));
    }
    broken
}

/// Exported functions of which a page of the guide does not speak. C++'s operators are told of as a whole, and so is what has a name of ours.
fn not_documented(allowed: &BTreeSet<String>, text: &str, page: &str) -> Vec<String> {
    let is_told = |name: &str| {
        name.starts_with("_Z") || name.starts_with("mallow_") || text.contains(&format!("`{name}`"))
    };
    let missing = allowed.iter().filter(|name| !is_told(name));
    missing.map(|name| format!("it exports {name}, of which {page} does not speak.")).collect()
}

/// Places where the 128-bit exchange is not as `nodes.rs` writes it. It takes half of its value from rbx, which the compiler may
/// be using for the address or the answer unless every operand has a register by name.
fn wrong_exchanges(assembly: &str) -> Vec<String> {
    let instructions: Vec<&str> =
        assembly.lines().filter_map(|line| Some(line.split_once('\t')?.1)).map(str::trim).collect();
    let words = |at: usize| {
        let text = instructions.get(at).copied().unwrap_or_default();
        text.split_whitespace().collect::<Vec<&str>>().join(" ")
    };
    let places: Vec<usize> =
        (0..instructions.len()).filter(|at| instructions[*at].contains("cmpxchg16b")).collect();
    if places.is_empty() {
        return vec!["objdump shows no 128-bit exchange, on which the stack table rests.".to_owned()];
    }
    let is_right = |at: &usize| {
        ["xchg rbx,rsi", "xchg rsi,rbx"].contains(&words(at - 1).as_str())
            // Versions of binutils disagree on the name of sixteen bytes.
            && words(*at).ends_with(" PTR [rdi]")
            && words(at + 1) == "sete r8b"
            && words(at + 2) == "mov rbx,rsi"
    };
    let wrong = places.iter().filter(|at| **at == 0 || !is_right(at));
    wrong.map(|at| format!("its 128-bit exchange uses other registers: {}.", words(*at))).collect()
}

/// What of the standard library's machinery of panics is in the library: a wrong index, an overflow, an `unwrap` would end the host.
/// All of them go through functions of `core::panicking`, which are never inlined.
fn ways_to_panic(symbols: &str, function: &str) -> Vec<String> {
    let names: Vec<&str> = symbols.lines().filter_map(|line| line.split_whitespace().next()).collect();
    if !names.iter().any(|name| name.contains(function)) {
        return vec![format!("nm shows no `{function}`, so whether the library can panic cannot be told.")];
    }
    let can_panic = names.iter().filter(|name| name.contains("panic"));
    can_panic.map(|name| format!("it can panic, which ends the host: it holds {name}.")).collect()
}

/// The list of exports: one name a line, `#` starts a comment.
fn names_in(list: &str) -> BTreeSet<String> {
    let without_comment = |line: &str| line.split('#').next().unwrap_or("").trim().to_owned();
    list.lines().map(without_comment).filter(|name| !name.is_empty()).collect()
}

/// Libraries in `readelf --dynamic`, as in `0x…01 (NEEDED)  Shared library: [libc.so.6]`.
fn needed(dynamic: &str) -> Vec<String> {
    let name = |line: &str| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned());
    dynamic.lines().filter(|line| line.contains("(NEEDED)")).filter_map(name).collect()
}

/// Versions in `readelf --version-info`, as in `  0x0010:   Name: GLIBC_2.2.5  Flags: none  Version: 2`.
fn version_needs(info: &str) -> Vec<String> {
    let needs = info.lines().skip_while(|line| !line.starts_with("Version needs section"));
    let name = |line: &str| Some(line.split_once("Name: ")?.1.split_whitespace().next()?.to_owned());
    needs.filter_map(name).collect()
}

/// Exported and undefined names in `readelf --dyn-syms`, whose rows are
/// `Num: Value Size Type Bind Vis Ndx Name[@version]`.
fn symbols(table: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut exported, mut undefined) = (BTreeSet::new(), BTreeSet::new());
    for line in table.lines() {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let &[number, _, _, _, bind, _, section, name, ..] = columns.as_slice() else { continue };
        if !number.ends_with(':') || number == "Num:" || bind == "LOCAL" {
            continue;
        }
        let name = name.split('@').next().unwrap_or(name).to_owned();
        if section == "UND" {
            undefined.insert(name);
        } else {
            exported.insert(name);
        }
    }
    (exported, undefined)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(source: &str, options: &[&str]) -> Facts {
        let folder = tempfile::tempdir().unwrap();
        let (c, so) = (folder.path().join("a.c"), folder.path().join("a.so"));
        std::fs::write(&c, source).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-shared", "-fPIC", "-o"]).args([&so, &c]).args(options);
        run::captured(&mut gcc).unwrap();
        Facts::of(&so).unwrap()
    }

    #[test]
    fn a_function_that_the_guide_leaves_out_is_found() {
        let exported = ["_Znwm", "free", "mallow_ops", "malloc"].map(str::to_owned).into();
        let found = not_documented(&exported, "the functions `malloc` and free", "page.md");
        assert_eq!(found, ["it exports free, of which page.md does not speak."]);
    }

    #[test]
    fn a_library_that_asks_for_nothing_keeps_the_promises() {
        let facts = library("int malloc_here(void) { return 1; }", &["-nostdlib"]);
        assert_eq!(
            broken_promises(&facts, &names_in("malloc_here # the only one\n"), "a list"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_panic_is_found() {
        let own = "_RNvNtCs1_15mallow_recorder7process15invariant_broke t 3a7e0 1f\n";
        assert_eq!(ways_to_panic(own, "invariant_broke"), Vec::<String>::new());
        let check = "_RNvNtCsg_4core9panicking18panic_bounds_check t 2fcf9 19\n";
        assert_eq!(ways_to_panic(&format!("{own}{check}"), "invariant_broke").len(), 1);
        assert_eq!(ways_to_panic("", "invariant_broke").len(), 1, "a library without symbols tells nothing");
    }

    #[test]
    fn an_exchange_with_other_registers_is_found() {
        let right = "  1:\txchg   rbx,rsi\n  2:\tlock cmpxchg16b XMMWORD PTR [rdi]\n  3:\tsete   r8b\n  4:\tmov    rbx,rsi\n";
        assert_eq!(wrong_exchanges(right), Vec::<String>::new());
        assert_eq!(wrong_exchanges(&right.replace("[rdi]", "[rbx]")).len(), 1);
        assert_eq!(wrong_exchanges(&right.replace("r8b", "bl")).len(), 1);
        assert_eq!(wrong_exchanges("  1:\tret\n").len(), 1);
    }

    #[test]
    fn a_library_that_asks_for_everything_breaks_each_promise() {
        let source = "#include <stdio.h>\n__thread int slot; int f(void) { puts(\"\"); return slot; }";
        let facts = library(source, &[]);
        let broken =
            broken_promises(&facts, &names_in("# what it should export\nf\ng\n"), "a list").join("\n");
        for sentence in [
            "it needs libc.so.6; it may need no library (DT_NEEDED).",
            "it needs the symbol version GLIBC_2.2.5; it may need none.",
            "it calls __tls_get_addr; thread-local state must be initial-exec.",
            "it refers to puts, which a program need not have.",
            "it exports slot, which is not in a list; hide it or add the line.",
            "it does not export g, which is in a list.",
        ] {
            assert!(broken.contains(sentence), "{sentence}\nis not among\n{broken}");
        }
    }
}
