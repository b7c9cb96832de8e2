//! Pictures of a terminal for README and the guide: a command is run, and what it prints becomes an SVG.
//!
//! Nothing in a picture is made up. What differs between runs and machines (times, the machine's description) is left out only where two pictures are compared.

use crate::{Workshop, repository, run};
use anstyle::RgbColor;
use regex::Regex;
use std::path::PathBuf;

/// A command, and what has to be there before it.
pub struct Picture {
    /// The name of its file, without `.svg`.
    pub name: &'static str,
    /// Commands that are not shown.
    setup: &'static [&'static str],
    /// What is typed.
    command: &'static str,
    /// The exit code of the command.
    exit: i32,
}

/// All pictures.
pub const PICTURES: [Picture; 3] = [
    Picture {
        name: "report",
        setup: &[
            "cc -g -O1 -o sessions programs/leaks/sessions.c",
            "mallow record -o sessions.mallow -- ./sessions",
        ],
        command: "mallow report sessions.mallow --metric leaked",
        exit: 0,
    },
    Picture {
        name: "diff",
        setup: &[
            "cc -g -O1 -I markers/c -o headers programs/gate/walk/before/test_headers.c -ldl",
            "mallow record -o before.mallow -- ./headers",
            "cc -g -O1 -I markers/c -o headers programs/gate/walk/after/test_headers.c -ldl",
            "mallow record -o after.mallow -- ./headers",
        ],
        command: "mallow diff before.mallow after.mallow --fail-on 'allocations>+1%'",
        exit: 1,
    },
    Picture {
        name: "check",
        setup: &[],
        command: "mallow check programs/gate/walk/after --against programs/gate/walk/before",
        exit: 1,
    },
];

impl Picture {
    /// Where the picture is kept.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        repository().join("docs/images").join(self.name).with_extension("svg")
    }

    /// Runs the commands, and draws what the last one prints on a terminal of 80 columns.
    ///
    /// # Panics
    /// When a command ends otherwise than it should.
    #[must_use]
    pub fn drawn(&self) -> String {
        let workshop = Workshop::new(self.name);
        let mallow = std::fs::canonicalize(run::mallow_binary()).expect("mallow is there");
        std::fs::create_dir(workshop.file("bin")).expect("the folder takes another");
        for (of, name) in [
            (mallow, "bin/mallow"),
            (repository().join("programs"), "programs"),
            (repository().join("markers"), "markers"),
        ] {
            std::os::unix::fs::symlink(of, workshop.file(name)).expect("the folder takes a link");
        }
        let path = format!("{}:/usr/bin:/bin", workshop.file("bin").display());
        let typed = |line: &str, more: &str| {
            let mut shell = run::command("/bin/sh");
            shell.args(["-c", &format!("{line}{more}")]).env("PATH", &path).env("COLUMNS", "80");
            run::finish(shell.env("HOME", workshop.path()).current_dir(workshop.path()))
        };
        for line in self.setup {
            let _ = typed(line, "").well();
        }
        let finished = typed(self.command, " --color always").ended(run::Exit::Status(self.exit));
        let prompt = format!("\x1b[2m$\x1b[0m \x1b[1m{}\x1b[0m\n\n", self.command);
        let printed = finished.stdout + &finished.stderr;
        // A folder of the machine where the picture was made.
        let shown = printed.lines().filter(|line| !line.starts_with("Working folder: "));
        let text = shown.fold(prompt, |text, line| text + line + "\n");
        render(text.trim_end())
    }
}

/// Draws text with escape sequences of a terminal, bright enough to be read where it is dim.
fn render(text: &str) -> String {
    let terminal = anstyle_svg::Term::new()
        .fg_color(RgbColor(226, 226, 226).into())
        .bg_color(RgbColor(24, 24, 27).into());
    terminal.render_svg(text).replace(".dimmed { opacity: 0.4; }", ".dimmed { opacity: 0.7; }") + "\n"
}

/// A picture without what differs between runs and machines.
///
/// # Panics
/// Never: the patterns are valid.
#[must_use]
pub fn settled(svg: &str) -> String {
    let masks = [(r"\d[\d.]* (ns|µs|us|ms|s|min)\b", "TIME"), (r"Ran on: [^<]*", "MACHINE")];
    masks.iter().fold(svg.to_owned(), |svg, (pattern, mask)| {
        Regex::new(pattern).expect("the pattern is valid").replace_all(&svg, *mask).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_and_the_machine_are_masked() {
        let shown =
            "<tspan>exit status 0 after 4.01 s</tspan> 172 KiB at 3 sites, Ran on: x86_64, 2 CPUs</tspan>";
        let expected = "<tspan>exit status 0 after TIME</tspan> 172 KiB at 3 sites, MACHINE</tspan>";
        assert_eq!(settled(shown), expected);
    }
}
