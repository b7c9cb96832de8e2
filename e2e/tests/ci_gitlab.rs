//! The GitLab component: its script installs mallow's tarball, compares a merge request with its target branch, and writes one note.

use e2e::ci_job::yaml;
use e2e::forge::{Forge, Kind, TOKEN};
use e2e::{Exit, Finished, Workshop, run};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const TARGET: &str = "release/1 & more";
const MARKER: &str = "<!-- mallow check: mallow-check -->\n";

/// A tarball as `cargo xtask dist` makes one, whose program is a word to the one under test; gives its checksum.
fn tarball(workshop: &Workshop) -> String {
    let tree = workshop.file("tree/mallow-0.1.0-x86_64-linux");
    let (programs, scripts) = (tree.join("bin"), tree.join("share/mallow/ci"));
    fs::create_dir_all(&programs).unwrap();
    fs::create_dir_all(&scripts).unwrap();
    let program =
        format!("#!/bin/sh\nexec '{}' \"$@\"\n", run::mallow_binary().canonicalize().unwrap().display());
    fs::write(programs.join("mallow"), program).unwrap();
    for entry in fs::read_dir(e2e::repository().join("integrations/ci")).unwrap().flatten() {
        fs::copy(entry.path(), scripts.join(entry.file_name())).unwrap();
    }
    let line = "chmod +x tree/*/bin/mallow && tar -czf checkout/mallow.tar.gz -C tree . && sha256sum checkout/mallow.tar.gz";
    // `--strip-components=1` takes `./` away, too, so the archive is made of the folder itself.
    let line = line.replace("-C tree .", "-C tree mallow-0.1.0-x86_64-linux");
    let sum =
        run::finish(run::command("/bin/sh").args(["-c", &line]).current_dir(workshop.path())).well().stdout;
    sum.split_whitespace().next().unwrap().to_owned()
}

/// A project's job, made of the component with these inputs.
struct Job<'a> {
    workshop: &'a Workshop,
    forge: &'a Forge,
    inputs: Vec<(&'static str, String)>,
}

impl Job<'_> {
    fn template() -> PathBuf {
        e2e::repository().join("integrations/gitlab/templates/mallow-check.yml")
    }

    /// A text with the inputs in it, as GitLab puts them there.
    fn with_inputs(&self, specified: &Value, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, input) in specified.as_object().unwrap() {
            let given = self.inputs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
            let value = given.or(input["default"].as_str());
            let place = format!("$[[ inputs.{name} ]]");
            assert!(value.is_some() || !text.contains(&place), "{name} is not given");
            text = text.replace(&place, value.unwrap_or_default());
        }
        text
    }

    fn run(&self, variables: &[(&str, &str)]) -> Finished {
        let documents = yaml(&Job::template());
        let specified = &documents[0]["spec"]["inputs"];
        let (name, job) = documents[1].as_object().unwrap().iter().next().unwrap();
        let mut shell = run::command("/bin/sh");
        shell
            .current_dir(self.workshop.file("checkout"))
            .env("XDG_CACHE_HOME", self.workshop.file("home-cache"));
        shell.env("CI", "true").env("CI_API_V4_URL", self.forge.address()).env("CI_PROJECT_ID", "3");
        shell.env("CI_JOB_NAME", self.with_inputs(specified, name)).env("CI_DEFAULT_BRANCH", "main");
        shell
            .env("CI_JOB_TOKEN", "of-the-job")
            .env("CI_COMMIT_SHA", "ab".repeat(20))
            .envs(variables.iter().copied());
        for (name, value) in job["variables"].as_object().unwrap() {
            shell.env(name, self.with_inputs(specified, value.as_str().unwrap()));
        }
        let lines: Vec<&str> =
            job["script"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        let script = lines.join("\n");
        assert!(!script.contains("$[["), "no input is in a line of a shell: {script}");
        run::finish(shell.args(["-e", "-c", &script]))
    }
}

#[test]
fn a_merge_request_has_one_note_whose_text_is_that_of_the_last_run() {
    let workshop = Workshop::new("component");
    let forge = Forge::start(Kind::GitLab);
    fs::create_dir_all(workshop.file("checkout/suite")).unwrap();
    let write = |blocks: u32| {
        let source = e2e::gate::source("").replace("i < 1000", &format!("i < {blocks}"));
        fs::write(workshop.file("checkout/suite/test_work.c"), source).unwrap();
    };
    let sha256 = tarball(&workshop);
    let inputs = vec![
        ("from", "mallow.tar.gz".to_owned()),
        ("sha256", sha256),
        ("suite", "suite".to_owned()),
        ("image", "debian:12".to_owned()),
    ];
    let job = Job { workshop: &workshop, forge: &forge, inputs };

    write(1000);
    let of_branch = job.run(&[("CI_COMMIT_BRANCH", "main"), ("MALLOW_GITLAB_TOKEN", TOKEN)]).well();
    assert!(of_branch.stderr.contains("this job is not of a pull or merge request"), "{of_branch}");
    let kept = fs::read(workshop.file("checkout/.mallow-report/report.json")).unwrap();
    let artifact =
        "/projects/3/jobs/artifacts/release%2F1%20%26%20more/raw/.mallow-report/report.json?job=mallow-check";
    forge.put_file(artifact, kept);
    assert_eq!(forge.asked(), [""; 0]);

    (0..100).for_each(|at| forge.add_comment("8", &format!("{MARKER}{at}")));
    let request = [
        ("CI_MERGE_REQUEST_IID", "12"),
        ("CI_MERGE_REQUEST_PROJECT_ID", "3"),
        ("CI_MERGE_REQUEST_TARGET_BRANCH_NAME", TARGET),
        ("MALLOW_GITLAB_TOKEN", TOKEN),
    ];
    let _ = job.run(&request).well();
    let notes = forge.comments();
    assert_eq!((notes.len(), notes[100].author.as_str()), (101, "7"));
    assert!(notes[100].body.starts_with(&format!("{MARKER}## Allocations: 1 test, all fine\n")), "{notes:?}");
    assert_eq!(forge.asked()[0], format!("GET {artifact}"));

    write(1040);
    let _ = job.run(&request).ended(Exit::Status(1));
    let again = forge.comments();
    assert_eq!((again.len(), again[..100] == notes[..100]), (101, true));
    assert!(again[100].body.contains("**REGRESSED** | `test_work` | 1.040 | 1,000 → 1,040"), "{again:?}");

    // Without a token nothing is written, and the verdict is the same.
    let alone = job.run(&request[..3]).ended(Exit::Status(1));
    assert!(alone.stderr.contains("there is no token for comments"), "{alone}");
    assert_eq!(forge.comments(), again);
}

#[test]
fn a_tarball_with_another_checksum_is_not_unpacked() {
    let workshop = Workshop::new("component-checksum");
    let forge = Forge::start(Kind::GitLab);
    fs::create_dir_all(workshop.file("checkout")).unwrap();
    let _ = tarball(&workshop);
    let of = |from: &str, sha256: String| {
        let inputs = vec![("from", from.to_owned()), ("sha256", sha256), ("image", "debian:12".to_owned())];
        Job { workshop: &workshop, forge: &forge, inputs }.run(&[("CI_COMMIT_BRANCH", "main")])
    };
    let refused = of("mallow.tar.gz", "0".repeat(64)).ended(Exit::Status(1));
    assert!(refused.stdout.is_empty() && refused.stderr.contains("checksum did NOT match"), "{refused}");
    let unsure = of(&format!("{}/mallow.tar.gz", forge.address()), String::new()).ended(Exit::Status(2));
    assert!(unsure.stderr.contains("an address needs a checksum"), "{unsure}");
    assert_eq!(forge.asked(), [""; 0]);
}
