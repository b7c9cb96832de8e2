//! Programs as compilers make them, and what is none.

use super::*;
use std::process::Command;

const LITERAL: &str = r#"
const char *__lsan_default_suppressions(void) { return "leak:first\nleak:^second*$\n"; }
int main(void) { return 0; }
"#;
const VARIABLE: &str = r#"
static const char *text = "leak:variable\n";
void change(const char *other) { text = other; }
const char *__lsan_default_suppressions(void) { return text; }
int main(int count, char **words) { if (count > 1) change(words[1]); return 0; }
"#;
const COMPUTED: &str = r#"
const char *__lsan_default_suppressions(void);
int main(int count, char **words) { return __lsan_default_suppressions() == words[0]; }
const char *__lsan_default_suppressions(void) {
    static char text[64];
    for (int i = 0; i < 5; i++) text[i] = "leak:"[i];
    return text[0] ? text : "leak:x";
}
"#;

/// Compiles `source` and returns what is embedded in it.
fn embedded(source: &str, flags: &[&str]) -> Result<Option<String>, NotALiteral> {
    let folder = tempfile::tempdir().unwrap();
    let (code, program) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&code, source).unwrap();
    let built = Command::new("gcc").args(flags).arg(&code).arg("-o").arg(&program).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    embedded_suppressions(&program, &[])
}

#[test]
fn a_literal_is_read_whatever_the_flags() {
    for optimised in ["-O0", "-O2", "-Os"] {
        for position in [&["-pie", "-fPIE"][..], &["-no-pie", "-fno-pie"]] {
            for extra in
                [&[][..], &["-fcf-protection=full"], &["-fno-omit-frame-pointer"], &["-mcmodel=large"]]
            {
                // gcc has no large model for code that may lie anywhere.
                if extra == ["-mcmodel=large"] && position[0] == "-pie" {
                    continue;
                }
                let flags = [&[optimised], position, extra].concat();
                let text = "leak:first\nleak:^second*$\n".to_owned();
                assert_eq!(embedded(LITERAL, &flags), Ok(Some(text)), "{flags:?}");
            }
        }
    }
}

#[test]
fn a_variable_is_read_as_it_begins() {
    for flags in [["-O0", "-pie", "-fPIE"], ["-O0", "-no-pie", "-fno-pie"], ["-O2", "-pie", "-fPIE"]] {
        assert_eq!(embedded(VARIABLE, &flags), Ok(Some("leak:variable\n".into())), "{flags:?}");
    }
}

#[test]
fn an_exported_one_is_found_in_a_stripped_program() {
    let text = "leak:first\nleak:^second*$\n".to_owned();
    assert_eq!(embedded(LITERAL, &["-O2", "-rdynamic", "-s"]), Ok(Some(text)));
    assert_eq!(embedded(LITERAL, &["-O2", "-s"]), Ok(None));
}

#[test]
fn what_is_computed_is_not_guessed() {
    for optimised in ["-O0", "-O2"] {
        assert_eq!(embedded(COMPUTED, &[optimised, "-pie"]), Err(NotALiteral));
    }
}

#[test]
fn programs_without_it_and_other_files_have_none() {
    assert_eq!(embedded("int main(void) { return 0; }", &["-O2"]), Ok(None));
    assert_eq!(embedded(LITERAL, &["-shared", "-fPIC"]), Ok(None));
    assert_eq!(embedded_suppressions(Path::new("/does/not/exist"), &[]), Ok(None));
    assert_eq!(embedded_suppressions_in(b"\x7fELF"), Ok(None));
    assert_eq!(embedded_suppressions_in(b""), Ok(None));
}

#[test]
fn another_build_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (code, program) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&code, LITERAL).unwrap();
    let built =
        Command::new("gcc").args(["-Wl,--build-id=0x1234"]).arg(&code).arg("-o").arg(&program).status();
    assert!(built.unwrap().success());
    assert!(embedded_suppressions(&program, &[0x12, 0x34]).unwrap().is_some());
    assert_eq!(embedded_suppressions(&program, &[0x12, 0x35]), Ok(None));
}

/// No cut and no flipped byte may do worse than find nothing.
#[test]
fn a_damaged_file_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let (code, program) = (folder.path().join("program.c"), folder.path().join("program"));
    std::fs::write(&code, LITERAL).unwrap();
    assert!(Command::new("gcc").arg(&code).arg("-o").arg(&program).status().unwrap().success());
    let whole = std::fs::read(&program).unwrap();
    for at in (0..whole.len()).step_by(37) {
        let _ = embedded_suppressions_in(&whole[..at]);
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        let _ = embedded_suppressions_in(&bytes);
    }
}
