//! Defaults of flags: variables, the project's file, the user's file, in this order; paths and links in the output.

use e2e::Workshop;
use e2e::run::{self, Exit, Finished};
use e2e::session::json;

const SOURCE: &str = "#include <stdlib.h>\n\
    static void *volatile kept[100];\n\
    static __attribute__((noinline)) void keep(int at) {\n\
      kept[at] = malloc(64);\n\
    }\n\
    int main(void) {\n\
      for (int at = 0; at < 100; at++) keep(at);\n\
      return kept[99] == 0;\n\
    }\n";

/// Creates a project whose program is in `src`, with a trace of it.
fn project(name: &str) -> Workshop {
    let workshop = Workshop::new(name);
    std::fs::create_dir_all(workshop.file("src")).unwrap();
    std::fs::create_dir_all(workshop.file("home/.config/mallow")).unwrap();
    std::fs::write(workshop.file("src/keep.c"), SOURCE).unwrap();
    let line = "cc -g -O1 -fno-optimize-sibling-calls src/keep.c -o app";
    let _ = run::finish(run::command("sh").args(["-c", line]).current_dir(workshop.path())).well();
    let _ = mallow(&workshop, "record -o a.mallow ./app", &[]).well();
    workshop
}

fn mallow(workshop: &Workshop, line: &str, variables: &[(&str, &str)]) -> Finished {
    let mut mallow = run::mallow();
    mallow.args(line.split(' ')).current_dir(workshop.path()).env("HOME", workshop.file("home"));
    run::finish(mallow.env("MALLOW_SYMBOL_CACHE", "").envs(variables.iter().copied()))
}

#[test]
fn files_and_variables_set_what_is_not_typed() {
    let workshop = project("settings");
    std::fs::write(
        workshop.file("home/.config/mallow/config.toml"),
        "color = \"always\"\ntop = 1\nwidth = 70\n",
    )
    .unwrap();
    std::fs::write(workshop.file("mallow.toml"), "[defaults]\ntop = 2\n").unwrap();
    let shown = mallow(&workshop, "config", &[("MALLOW_WIDTH", "90")]).well().stdout;
    let user = workshop.file("home/.config/mallow/config.toml");
    let expected = format!(
        "color       always                    {}\n\
         debug-path  -                         MALLOW_DEBUG_PATH and no file sets it\n\
         pager       -                         MALLOW_PAGER and no file sets it\n\
         sysroot     -                         MALLOW_SYSROOT and no file sets it\n\
         top         2                         mallow.toml\n\
         width       90                        MALLOW_WIDTH\n",
        user.display()
    );
    assert_eq!(shown, expected);
    let document = json(&mallow(&workshop, "config --json", &[]).well().stdout);
    assert_eq!(document["schema"], "mallow.config/1");
    let rows = document["flags"].as_array().unwrap();
    assert_eq!(rows.iter().find(|row| row["flag"] == "top").unwrap()["value"], "2");
    // They take effect, and the command line takes precedence.
    assert!(mallow(&workshop, "report a.mallow", &[]).well().stdout.contains("\x1b[1m"));
    assert!(!mallow(&workshop, "report a.mallow --color never", &[]).well().stdout.contains('\x1b'));
    let page = mallow(&workshop, "report a.mallow --metric bytes --color never", &[("MALLOW_TOP", "1")])
        .well()
        .stdout;
    assert_eq!(
        page,
        mallow(&workshop, "report a.mallow --metric bytes --color never --top 1", &[]).well().stdout
    );
}

#[test]
fn slips_are_told_and_a_project_starts_nothing() {
    let workshop = project("slips");
    std::fs::write(workshop.file("home/.config/mallow/config.toml"), "\ncolour = \"always\"\n").unwrap();
    let told = mallow(&workshop, "report a.mallow", &[]).ended(Exit::Status(2)).stderr;
    let place = workshop.file("home/.config/mallow/config.toml");
    let expected = format!(
        "mallow: cannot use {}, line 2, column 1: there is no key `colour` here; did you mean `color`?\n",
        place.display()
    );
    assert_eq!(told, expected);
    // A command that passes on a status must not use one that the program might have used.
    let _ = mallow(&workshop, "record ./app", &[]).ended(Exit::Status(125));
    std::fs::remove_file(place).unwrap();
    std::fs::write(workshop.file("mallow.toml"), "[defaults]\npager = \"touch evil\"\n").unwrap();
    let told = mallow(&workshop, "report a.mallow", &[]).ended(Exit::Status(2)).stderr;
    assert!(told.contains("mallow.toml, line 2, column 1: a project names no pager"), "{told}");
    let _ = mallow(&workshop, "check .", &[]).ended(Exit::Status(2));
    assert!(!workshop.file("evil").exists());
    let told =
        mallow(&workshop, "report a.mallow", &[("MALLOW_COLOR", "pink")]).ended(Exit::Status(2)).stderr;
    assert_eq!(told, "mallow: MALLOW_COLOR is pink, and auto, always or never was expected.\n");
}

#[test]
fn places_of_sources_here_have_their_paths_and_can_be_links() {
    let workshop = project("places");
    let page = |line: &str, variables: &[(&str, &str)]| mallow(&workshop, line, variables).well().stdout;
    let report = "report a.mallow --metric bytes";
    let plain = page(report, &[]);
    assert!(plain.contains("keep (src/keep.c:4)") && plain.contains("main (src/keep.c:7)"), "{plain}");
    assert!(!plain.contains("\x1b]8"), "nobody can follow a link in a pipe");
    let link = format!(
        "keep (\x1b]8;;file://{}#4\x1b\\src/keep.c:4\x1b]8;;\x1b\\)",
        workshop.file("src/keep.c").canonicalize().unwrap().display()
    );
    let forced = [("FORCE_HYPERLINK", "1")];
    assert!(page(report, &forced).contains(&link), "{}", page(report, &forced));
    for line in [format!("{report} --color never"), format!("{report} -o out --force")] {
        assert!(!page(&line, &forced).contains("\x1b]8"), "{line}");
    }
    assert!(!std::fs::read_to_string(workshop.file("out")).unwrap().contains('\x1b'));
    let none = [("FORCE_HYPERLINK", "1"), ("NO_COLOR", "1")];
    assert_eq!(page(report, &none), plain);
    // A file that is gone, or is elsewhere, is shown as before.
    std::fs::rename(workshop.file("src"), workshop.file("gone")).unwrap();
    assert!(page(report, &[]).contains("keep (keep.c:4)"));
    // In a document, paths are those that the compiler wrote.
    assert!(page("report a.mallow --json", &[]).contains("/src/keep.c\""));
}
