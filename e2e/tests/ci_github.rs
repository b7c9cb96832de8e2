//! The GitHub Action: its steps install mallow, compare a request with the default branch, and write one comment, whatever the branch is called.

use e2e::ci_job::{Job, yaml};
use e2e::forge::{Comment, Forge, Kind, TOKEN};
use e2e::{Finished, Workshop, run};
use std::fs;
use std::path::Path;

/// A folder's name that is a command wherever it is not quoted, and a branch's like it.
const SUITE: &str = "a suite; touch pwned; $(touch pwned) `touch pwned` \"";
const BRANCH: &str = "fix$(touch${IFS}pwned);touch${IFS}pwned";
const MARKER: &str = "<!-- mallow check: mallow -->\n";

fn write_suite(workshop: &Workshop, blocks: u32) {
    let folder = workshop.file("checkout").join(SUITE);
    fs::create_dir_all(&folder).unwrap();
    let source = e2e::gate::source("").replace("i < 1000", &format!("i < {blocks}"));
    fs::write(folder.join("test_work.c"), source).unwrap();
    fs::write(folder.join("mallow.toml"), "[gate]\nsuites = [\".\"]\n").unwrap();
}

fn job<'a>(workshop: &'a Workshop, forge: &Forge, event: &str) -> Job<'a> {
    let branch = if event == "push" { "main" } else { BRANCH };
    let mut job = Job::new(workshop, event, branch);
    let payload = workshop.file("event.json");
    let request =
        format!("{{\"pull_request\":{{\"number\":12,\"head\":{{\"sha\":\"{}\"}}}}}}", "ab".repeat(20));
    fs::write(&payload, if event == "push" { "{}" } else { &request }).unwrap();
    for (name, value) in [
        ("GITHUB_API_URL", forge.address().as_str()),
        ("GITHUB_REPOSITORY", "some/project"),
        ("GITHUB_EVENT_PATH", &payload.display().to_string()),
        ("GITHUB_HEAD_REF", BRANCH),
    ] {
        job.variables.insert(name.to_owned(), value.to_owned());
    }
    job
}

fn run_job(workshop: &Workshop, forge: &Forge, event: &str) -> (String, bool) {
    let mallow = run::mallow_binary().canonicalize().unwrap().display().to_string();
    let inputs = [("from", mallow.as_str()), ("suite", SUITE), ("arguments", "--runs\n3")];
    let (steps, is_well) = job(workshop, forge, event).run(&inputs);
    let text: Vec<String> = steps.iter().map(Finished::to_string).collect();
    assert!(!workshop.file("checkout/pwned").exists(), "{}", text.concat());
    (text.concat(), is_well)
}

fn own(forge: &Forge) -> Vec<Comment> {
    forge.comments().into_iter().filter(|comment| comment.author == forge.own_author()).collect()
}

#[test]
fn a_request_has_one_comment_whose_text_is_that_of_the_last_run() {
    let workshop = Workshop::new("action");
    let forge = Forge::start(Kind::GitHub);
    // More than a page of others' comments; one of them begins as ours does.
    forge.add_comment("mallory", MARKER);
    (0..120).for_each(|at| forge.add_comment("somebody", &format!("comment {at}")));
    let others = forge.comments();

    write_suite(&workshop, 1000);
    let (text, is_well) = run_job(&workshop, &forge, "push");
    assert!(is_well && text.contains("MISSING") && text.contains("no failure here"), "{text}");
    assert_eq!(forge.asked(), [""; 0], "nothing is said of a push");

    let (text, is_well) = run_job(&workshop, &forge, "pull_request");
    assert!(is_well, "{text}");
    let first = own(&forge);
    assert_eq!(first.len(), 1, "{text}");
    let body = &first[0].body;
    assert!(body.starts_with(&format!("{MARKER}## Allocations: 1 test, all fine\n")), "{body}");
    assert!(body.ends_with(&format!("\nOf commit {}.\n", "ab".repeat(20))), "{body}");
    let comments = "/repos/some/project/issues/12/comments";
    assert_eq!(
        forge.asked(),
        [
            format!("GET {comments}?per_page=100&page=1"),
            format!("GET {comments}?per_page=100&page=2"),
            format!("POST {comments}")
        ]
    );

    write_suite(&workshop, 1040);
    let (text, is_well) = run_job(&workshop, &forge, "pull_request");
    assert!(!is_well, "{text}");
    let second = own(&forge);
    assert_eq!((second.len(), second[0].id), (1, first[0].id), "{text}");
    let body = &second[0].body;
    assert!(body.contains("**REGRESSED** | `test_work` | 1.040 | 1,000 → 1,040"), "{body}");
    assert!(body.contains("A merge accepts these values.") && !body.contains("To accept"), "{body}");
    assert_eq!(
        forge.asked().last(),
        Some(&format!("PATCH /repos/some/project/issues/comments/{}", first[0].id))
    );
    assert_eq!(forge.comments()[..others.len()], others, "others' comments are theirs");
}

#[test]
fn a_request_from_a_fork_is_judged_without_a_comment() {
    let workshop = Workshop::new("action-fork");
    let forge = Forge::start(Kind::GitHub);
    forge.refuse_comments();
    write_suite(&workshop, 1000);
    // Nothing is kept, and there is no limit: the test is MISSING, and the step fails.
    let (text, is_well) = run_job(&workshop, &forge, "pull_request");
    assert!(!is_well && text.contains("no report is kept yet"), "{text}");
    assert!(text.contains("the token may not write comments here (403)"), "{text}");
    assert_eq!(forge.comments(), []);
}

#[test]
fn the_token_is_in_no_argument_and_nothing_of_a_request_in_a_line_of_a_shell() {
    let action = fs::read_to_string(e2e::repository().join("integrations/github/action.yml")).unwrap();
    for step in yaml(&e2e::repository().join("integrations/github/action.yml"))[0]["runs"]["steps"]
        .as_array()
        .unwrap()
    {
        assert!(!step["run"].as_str().unwrap_or_default().contains("${{"), "{step}");
    }
    assert!(!action.contains("head_ref") && !action.contains("github.event.pull_request.title"), "{action}");

    // A curl that writes its arguments down, in front of the real one.
    let workshop = Workshop::new("action-token");
    let forge = Forge::start(Kind::GitHub);
    let (report, log) = (workshop.file("report.md"), workshop.file("arguments"));
    fs::write(&report, "## A report\n").unwrap();
    fs::create_dir(workshop.file("bin")).unwrap();
    let curl = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >> {}\nexec /usr/bin/curl \"$@\"\n", log.display());
    write_program(&workshop.file("bin/curl"), &curl);
    let mut sh = run::command("/bin/sh");
    sh.arg(e2e::repository().join("integrations/ci/comment.sh"))
        .envs(&job(&workshop, &forge, "pull_request").variables);
    sh.env("PATH", format!("{}:/usr/bin:/bin", workshop.file("bin").display()));
    let _ = run::finish(sh.env("MALLOW_REPORT", &report).env("MALLOW_TOKEN", TOKEN)).well();
    assert_eq!(own(&forge).len(), 1);
    let arguments = fs::read_to_string(&log).unwrap();
    assert!(arguments.contains("--request\nPOST") && !arguments.contains(TOKEN), "{arguments}");
}

fn write_program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
