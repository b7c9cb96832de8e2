//! Frames of real binaries against `addr2line -Cfie` of binutils, which shares no code with ours.
//!
//! It has two known weaknesses. For a function written in an included file (glibc's `getgrnam` in `getXXbyYY.c`) it
//! names the file that includes: where names and lines agree and only the file does not, `eu-addr2line` of elfutils decides.
//! And where DWARF has no linkage names (line tables only), it gives the symbol's name to the innermost inlined call, and
//! its bare one to the physical function whose symbol that is.

use object::{Object, ObjectSymbol};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::toolchain::{key, run, text};
use mallow_base::Frame;
use mallow_symbols::{SearchPaths, Symbolizer};

/// `count` addresses spread evenly over the sized functions that `nm` lists for a file. Addresses with two symbols
/// serve only where DWARF names them: which of two symbols is the better one is a matter of taste.
fn sample(symbols: &str, count: usize, with_aliases: bool) -> Vec<u64> {
    let hex = |text: &str| u64::from_str_radix(text, 16).expect("nm prints hexadecimal numbers");
    let mut functions: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for line in symbols.lines() {
        let mut words = line.split_whitespace();
        let (Some(start), Some(size), Some("t" | "T")) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        functions.entry(hex(start)).or_insert((hex(size), 0)).1 += 1;
    }
    functions.retain(|_, &mut (_, names)| with_aliases || names == 1);
    let step = (functions.len() / count).max(1);
    // The first quarter, the middle and the end of functions in turn.
    let at = |(index, (start, (size, _))): (usize, (&u64, &(u64, usize)))| {
        start + (size - 1) * (index as u64 % 4 + 1) / 4
    };
    functions.iter().step_by(step).take(count).enumerate().map(at).collect()
}

/// What binutils says of each address: `function`, `file:line` pairs, innermost first.
fn judged(binary: &Path, svmas: &[u64]) -> Vec<Vec<(String, String)>> {
    let mut child = Command::new("addr2line")
        .args(["-a", "-Cfie", text(binary)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("addr2line of binutils is needed by this test");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let questions: String = svmas.iter().map(|svma| format!("{svma:#x}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(questions.as_bytes()));
    let output = child.wait_with_output().expect("addr2line ends");
    writer.join().expect("the writer ends").expect("addr2line reads its input");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut answers = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            answers.push(Vec::new());
            continue;
        }
        let place = lines.next().expect("a place follows a function");
        let place = place.split(" (discriminator").next().unwrap_or(place);
        // Without a line it prints the name of the object file instead of a source file.
        let place = if place.ends_with(":?") { "??:?" } else { place };
        answers.last_mut().expect("an address comes first").push((line.to_owned(), place.to_owned()));
    }
    answers
}

/// Our frames in the judge's words. It prints `?` for what is unknown.
fn ours(frames: &[Frame]) -> Vec<(String, String)> {
    let place = |frame: &Frame| {
        let line = frame.line.map_or_else(|| "?".to_owned(), |line| line.to_string());
        format!("{}:{line}", frame.file.as_deref().unwrap_or("??"))
    };
    frames.iter().map(|frame| (frame.function.clone(), place(frame))).collect()
}

/// Equal frames. Of paths the judge's may begin with more folders: it repeats the compiler's folder where the line
/// table begins with it already (`./iconv/./iconv/gconv.c`).
fn agree(ours: &[(String, String)], theirs: &[(String, String)]) -> bool {
    let same =
        |((our_name, our_place), (their_name, their_place)): (&(String, String), &(String, String))| {
            our_name == their_name && their_place.replace("./", "").ends_with(&our_place.replace("./", ""))
        };
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(same)
}

/// The symbol's name stands at the wrong end of their list, and everything else is equal.
fn is_misplaced(ours: &[(String, String)], theirs: &[(String, String)]) -> bool {
    let ([.., (symbol, _)], [(misplaced, _), .., (bare, _)]) = (ours, theirs) else { return false };
    // The name in the DWARF has no path, and a closure's a number: `{closure#3}` of `work::{{closure}}`.
    let word = bare.split(['<', '#']).next().unwrap_or(bare);
    let mut righted = theirs.to_vec();
    righted[0].0.clone_from(&ours[0].0);
    righted[theirs.len() - 1].0.clone_from(symbol);
    symbol == misplaced && symbol.contains(word) && agree(ours, &righted)
}

/// Assembly has several names for one address, of which the judge takes the last that its DWARF has, such as `__GI_getpid`, and we the best known, `getpid`.
/// Returns whether the frames differ in nothing else.
fn are_aliases(binary: &Path, ours: &[(String, String)], theirs: &[(String, String)]) -> bool {
    let ([(our_name, place)], [(their_name, _)]) = (ours, theirs) else { return false };
    let renamed = [(our_name.clone(), theirs[0].1.clone())];
    let is_assembly = place.rsplit_once(':').is_some_and(|(file, _)| file.ends_with(".S"));
    let addresses = |name: &str| -> BTreeSet<u64> {
        let file = debug_file(binary);
        let file = object::File::parse(&*file).unwrap();
        let is_it = |symbol: &str| symbol.split('@').next() == Some(name);
        file.symbols()
            .filter(|symbol| symbol.name().is_ok_and(is_it))
            .map(|symbol| symbol.address())
            .collect()
    };
    is_assembly && agree(ours, &renamed) && !addresses(our_name).is_disjoint(&addresses(their_name))
}

/// The separate debug file of a library.
fn debug_file(binary: &Path) -> Vec<u8> {
    let bytes = std::fs::read(binary).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let id = file.build_id().unwrap().expect("it has a build id");
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::read(format!("/usr/lib/debug/.build-id/{}/{}.debug", &hex[..2], &hex[2..])).unwrap()
}

/// Names and lines without files.
fn without_files(frames: &[(String, String)]) -> Vec<(&str, Option<&str>)> {
    frames.iter().map(|(name, place)| (name.as_str(), place.rsplit(':').next())).collect()
}

/// The innermost place as elfutils sees it.
fn second_opinion(binary: &Path, svma: u64) -> String {
    let answer = run(Path::new("/"), "eu-addr2line", &["-e", text(binary), &format!("{svma:#x}")]);
    // `file:line:column`
    let place = answer.trim().rsplit_once(':').map(|(place, _)| place);
    place.unwrap_or_default().replace("./", "")
}

fn compare(binary: &Path, svmas: &[u64]) {
    assert!(svmas.len() >= 200, "only {} addresses", svmas.len());
    let mut symbolizer = Symbolizer::new(SearchPaths::default());
    let resolved = symbolizer.resolve(&key(binary), svmas);
    let judged = judged(binary, svmas);
    assert_eq!(judged.len(), svmas.len());
    let (mut second_opinions, mut misplaced, mut aliases, mut differing) = (0, 0, 0, 0);
    for ((&svma, ours), theirs) in svmas.iter().zip(resolved.iter().map(|frames| ours(frames))).zip(&judged) {
        if agree(&ours, theirs) {
            continue;
        }
        if is_misplaced(&ours, theirs) {
            misplaced += 1;
            continue;
        }
        if are_aliases(binary, &ours, theirs) {
            aliases += 1;
            continue;
        }
        if without_files(&ours) == without_files(theirs)
            && second_opinion(binary, svma).ends_with(&ours[0].1.replace("./", ""))
        {
            second_opinions += 1;
            continue;
        }
        differing += 1;
        println!("{svma:#x}\n  ours   {ours:?}\n  theirs {theirs:?}");
    }
    println!(
        "{}: {} addresses, {second_opinions} by second opinion, {misplaced} with a misplaced name",
        binary.display(),
        svmas.len()
    );
    assert_eq!(differing, 0, "of {} addresses", svmas.len());
    assert!(second_opinions * 10 < svmas.len(), "{second_opinions} second opinions");
    assert!(misplaced * 4 < svmas.len(), "{misplaced} misplaced names");
    assert!(aliases * 8 < svmas.len(), "{aliases} aliases");
    assert_eq!(symbolizer.warnings(), [""; 0]);
}

#[test]
fn a_rust_binary_agrees_with_addr2line() {
    let binary = std::env::current_exe().expect("a test knows its own file");
    let symbols = run(Path::new("/"), "nm", &["-S", "--defined-only", text(&binary)]);
    compare(&binary, &sample(&symbols, 600, false));
}

#[test]
fn glibc_with_its_debug_package() {
    let libc = PathBuf::from("/lib/x86_64-linux-gnu/libc.so.6");
    let symbols = run(Path::new("/"), "nm", &["-S", "--defined-only", "-D", text(&libc)]);
    compare(&libc, &sample(&symbols, 600, true));
}

/// Long lists are split between two workers: the answers must not show it.
#[test]
fn a_long_list_is_answered_like_short_ones() {
    let binary = std::env::current_exe().expect("a test knows its own file");
    let symbols = run(Path::new("/"), "nm", &["-S", "--defined-only", text(&binary)]);
    let mut svmas = sample(&symbols, usize::MAX, true);
    // The caller's order is not ours.
    svmas.reverse();
    assert!(svmas.len() > 2_500, "only {} addresses", svmas.len());
    let mut symbolizer = Symbolizer::new(SearchPaths::default());
    let whole = symbolizer.resolve(&key(&binary), &svmas);
    let parts: Vec<_> = svmas.chunks(500).flat_map(|part| symbolizer.resolve(&key(&binary), part)).collect();
    assert_eq!(whole.len(), svmas.len());
    assert!(whole == parts, "answers differ");
    assert!(whole.iter().any(|frames| frames.len() > 3), "nothing was inlined");
}
