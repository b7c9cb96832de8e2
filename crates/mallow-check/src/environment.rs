//! What counts depend on besides the program, recognised.
//!
//! This module looks at nothing itself. Callers hand it what they see of a program: its executable, what it has mapped,
//! the bytes of its libc.

use mallow_gate::environment::COUNTING;
use mallow_gate::measurement::Environment;
use memchr::memmem;

/// What can be observed of a program.
#[derive(Clone, Copy, Debug)]
pub struct ObservedProgram<'a> {
    /// Such as `x86_64`.
    pub architecture: &'a str,
    /// The executable's path, symbolic links resolved.
    pub executable: &'a str,
    /// Paths of all libraries that it has mapped.
    pub modules: &'a [String],
    /// The content of its libc, if it could be read.
    pub libc: &'a [u8],
    /// The language's runtime where its version is known otherwise (a compiler's), such as `rustc 1.88`.
    pub runtime: Option<&'a str>,
    /// Processors that the program may run on.
    pub processors: u32,
}

/// The environment of a program that a caller sees.
pub fn of(seen: &ObservedProgram<'_>) -> Environment {
    let known = seen.runtime.map(str::to_owned);
    // The interpreter's own report is more reliable than its file's name.
    let with_version = known.clone().filter(|known| known.contains(|c: char| c.is_ascii_digit()));
    Environment {
        architecture: seen.architecture.to_owned(),
        libc: libc(seen.modules, seen.libc),
        runtime: with_version
            .or_else(|| runtime(seen.executable, seen.modules))
            .or(known)
            .unwrap_or_else(|| "native".to_owned()),
        allocator: allocator(seen.modules).to_owned(),
        processors: seen.processors,
        counting: COUNTING,
    }
}

/// Returns the name and version of the libc among the mapped libraries, such as `glibc 2.36` or `musl 1.2.3`. glibc
/// contains its version in a sentence for `ldd --version`, musl beside its own name; if that is not found, only the
/// name is returned.
pub fn libc(modules: &[String], content: &[u8]) -> String {
    if let Some(version) = number_after(content, b"GNU C Library") {
        return format!("glibc {version}");
    }
    let is_named = |start: &str| modules.iter().any(|path| file_name(path).starts_with(start));
    // Where musl is not the system's own libc, its file is called libc.so; its loader introduces itself by name.
    let registers_itself = memmem::find(content, b"musl libc").is_some();
    if registers_itself || is_named("ld-musl") || is_named("libc.musl") {
        return version_line(content).map_or_else(|| "musl".to_owned(), |version| format!("musl {version}"));
    }
    if is_named("libc.so") || is_named("libc-") { "glibc".to_owned() } else { "unknown".to_owned() }
}

/// Returns the version in the line that begins with a text: the first number with a point after the word `version`.
fn number_after(content: &[u8], start: &[u8]) -> Option<String> {
    let at = memmem::find(content, start)?;
    let line = content[at..].split(|byte| matches!(byte, b'\n' | 0)).next()?;
    let line = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
    let (_, behind) = line.split_once("version ")?;
    let version: String = behind.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let version = version.trim_end_matches('.');
    version.contains('.').then(|| version.to_owned())
}

/// Returns the first string of the form `1.2.3` in a binary: musl's own version is between two zero bytes.
fn version_line(content: &[u8]) -> Option<String> {
    content
        .split(|byte| *byte == 0)
        .filter(|text| (5..=12).contains(&text.len()))
        .filter_map(|text| std::str::from_utf8(text).ok())
        .find(|text| {
            let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            text.split('.').count() == 3 && text.split('.').all(is_number)
        })
        .map(str::to_owned)
}

/// The allocator among the mapped libraries: the libc's own unless another is there.
pub fn allocator(modules: &[String]) -> &'static str {
    const OTHERS: [(&str, &str); 4] = [
        ("libjemalloc", "jemalloc"),
        ("libmimalloc", "mimalloc"),
        ("libtcmalloc", "tcmalloc"),
        ("libsnmalloc", "snmalloc"),
    ];
    let is_mapped = |start: &str| modules.iter().any(|path| file_name(path).starts_with(start));
    OTHERS.into_iter().find(|(start, _)| is_mapped(start)).map_or("libc", |(_, name)| name)
}

/// The interpreter with its version, from the names of executable and libraries.
pub fn runtime(executable: &str, modules: &[String]) -> Option<String> {
    let names = std::iter::once(executable).chain(modules.iter().map(String::as_str)).map(file_name);
    let found: Vec<String> = names.filter_map(runtime_of_name).collect();
    // `/usr/bin/ruby` does not say its version, its library does.
    let is_versioned = |name: &&String| name.bytes().any(|b| b.is_ascii_digit());
    found.iter().find(is_versioned).or(found.first()).cloned()
}

fn runtime_of_name(name: &str) -> Option<String> {
    const STARTS: [(&str, &str); 9] = [
        ("libpython", "python"),
        ("python", "python"),
        ("libruby-", "ruby"),
        ("libruby", "ruby"),
        ("ruby", "ruby"),
        ("libnode.so.", "node abi"),
        ("libswiftCore", "swift"),
        ("libphp", "php"),
        ("libperl.so.", "perl"),
    ];
    if name == "node" || name == "nodejs" {
        return Some("node".to_owned());
    }
    let (start, language) = STARTS.into_iter().find(|(start, _)| name.starts_with(start))?;
    let version: String =
        name[start.len()..].chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    // `libpython3.11.so` and `libruby-3.1.so.3.1`: the part after the name, up to the ending.
    match version.trim_matches('.') {
        "" if language == "swift" || name == language => Some(language.to_owned()),
        "" => None,
        version => Some(format!("{language} {version}")),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
#[path = "environment_tests.rs"]
mod tests;
