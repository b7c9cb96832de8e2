//! What a Swift file and its compiler tell about themselves.

/// Returns whether a file declares `func run(identifier:)`, however it is spaced; what is commented out does not.
pub(super) fn has_run(text: &str) -> bool {
    text.lines().any(|line| {
        let line: String = line.split("//").next().unwrap_or_default().split_whitespace().collect();
        line.contains("funcrun(identifier")
    })
}

/// The runtime of a compiler that tells its version so. Patches do not change what the library allocates.
pub(super) fn runtime(version: &str) -> Option<String> {
    let version = version.split_whitespace().skip_while(|word| *word != "version").nth(1)?;
    Some(format!("swift {}", version.split('.').take(2).collect::<Vec<_>>().join(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_known_however_it_is_spaced() {
        for text in [
            "import NIOCore\nfunc run(identifier: String) {\n",
            "  public func  run( identifier : String ) {}",
            "fileprivate func helper() {}\nfunc run(identifier id: String) { }",
        ] {
            assert!(has_run(text), "{text}");
        }
        for text in
            ["// func run(identifier: String)", "run(identifier: \"a\")", "func run(name: String) {}", ""]
        {
            assert!(!has_run(text), "{text}");
        }
    }
}
