//! Runs the steps of our GitHub Action, as a runner of GitHub's does: conditions, variables, expressions, what a step leaves to the next.
//!
//! It knows the part of the format that the action uses, and fails at everything else, so that no step is passed over unseen.

use crate::{Exit, Finished, Workshop, repository, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The documents of a YAML file.
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn yaml(path: &Path) -> Vec<Value> {
    let mut ruby = run::command("/usr/bin/ruby");
    ruby.args(["-ryaml", "-rjson", "-e", "print JSON.dump(YAML.load_stream(File.read(ARGV[0])))"]).arg(path);
    serde_json::from_str(&run::finish(&mut ruby).well().stdout).expect("ruby writes JSON")
}

/// A job with one step of its own: the action.
pub struct Job<'a> {
    /// The job's folders lie here.
    pub workshop: &'a Workshop,
    /// Values of names in expressions: `github.event_name`, and inputs that have no default.
    pub values: BTreeMap<String, String>,
    /// Variables that the runner sets.
    pub variables: BTreeMap<String, String>,
}

impl<'a> Job<'a> {
    /// A job for an event in a checkout.
    ///
    /// # Panics
    /// When the workshop takes no folder.
    #[must_use]
    pub fn new(workshop: &'a Workshop, event: &str, branch: &str) -> Self {
        for folder in ["checkout", "temp", "cache"] {
            fs::create_dir_all(workshop.file(folder)).expect("the workshop takes a folder");
        }
        let values = [
            ("github.event_name", event),
            ("github.ref_name", branch),
            ("github.event.repository.default_branch", "main"),
            ("github.sha", "0123456789"),
            ("github.run_id", "1"),
            ("github.run_attempt", "1"),
            ("github.token", crate::forge::TOKEN),
            ("runner.os", "Linux"),
            ("runner.arch", "X64"),
        ];
        let mut values: BTreeMap<String, String> = owned(&values);
        values.insert("runner.temp".to_owned(), workshop.file("temp").display().to_string());
        Self { workshop, values, variables: owned(&[("CI", "true"), ("GITHUB_ACTIONS", "true")]) }
    }

    /// Runs the action to its end. Gives what each step that ran printed, and how the job ended.
    ///
    /// # Panics
    /// When the action has something that this runner does not know.
    #[must_use]
    pub fn run(mut self, inputs: &[(&str, &str)]) -> (Vec<Finished>, bool) {
        let folder = repository().join("integrations/github");
        let action = yaml(&folder.join("action.yml")).remove(0);
        for (name, input) in action["inputs"].as_object().expect("the action has inputs") {
            let given = inputs.iter().find(|(known, _)| known == name).map(|(_, value)| (*value).to_owned());
            let value = given.or_else(|| input["default"].as_str().map(|text| self.expanded(text)));
            self.values.insert(format!("inputs.{name}"), value.expect("an input without a default is given"));
        }
        let (mut finished, mut is_well) = (Vec::new(), true);
        for step in action["runs"]["steps"].as_array().expect("the action has steps") {
            let condition = step["if"].as_str().unwrap_or("");
            let is_wanted = condition.is_empty() || is_true(&self.evaluated(condition));
            if !is_wanted || !(is_well || condition.starts_with("always() && ")) {
                continue;
            }
            if let Some(uses) = step["uses"].as_str() {
                self.cache(uses, &step["with"]);
            } else {
                let ended = self.step(step, &folder);
                is_well &= ended.exit == Exit::Status(0);
                finished.push(ended);
            }
        }
        (finished, is_well)
    }

    fn step(&self, step: &Value, folder: &Path) -> Finished {
        assert_eq!(step["shell"], "sh", "this runner knows sh only");
        let script = self.workshop.file("step.sh");
        fs::write(&script, step["run"].as_str().expect("a step runs something")).expect("it can be written");
        let paths = self.workshop.file("github-path");
        let added = fs::read_to_string(&paths).unwrap_or_default();
        let mut shell = run::command("/bin/sh");
        shell.arg("-e").arg(&script).current_dir(self.workshop.file("checkout"));
        shell.env("PATH", format!("{}:/usr/bin:/bin", added.lines().collect::<Vec<_>>().join(":")));
        shell.env("XDG_CACHE_HOME", self.workshop.file("home-cache"));
        shell.env("GITHUB_PATH", &paths).env("GITHUB_OUTPUT", self.workshop.file("github-output"));
        shell.env("GITHUB_ACTION_PATH", folder).envs(&self.variables);
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            shell.env(name, self.expanded(value.as_str().expect("a variable is a text")));
        }
        run::finish(&mut shell)
    }

    /// A cache that has room for one entry: the newest.
    fn cache(&self, uses: &str, with: &Value) {
        let path = PathBuf::from(self.expanded(with["path"].as_str().expect("a cache has a path")));
        let stored = self.workshop.file("cache").join(path.file_name().expect("the path has a name"));
        let (from, to) = match uses {
            "actions/cache/restore@v4" => (stored, path),
            "actions/cache/save@v4" => (path, stored),
            _ => panic!("this runner does not know {uses}"),
        };
        if from.is_dir() {
            fs::create_dir_all(&to).expect("the folder can be made");
            for entry in fs::read_dir(from).expect("the folder can be read").flatten() {
                fs::copy(entry.path(), to.join(entry.file_name())).expect("a file can be copied");
            }
        }
    }

    /// A text with its expressions replaced.
    fn expanded(&self, text: &str) -> String {
        let mut pieces = text.split("${{");
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (expression, rest) = piece.split_once("}}").expect("an expression ends");
            out += &self.evaluated(expression.trim());
            out += rest;
        }
        out
    }

    /// The value of an expression without parentheses but those of a function.
    fn evaluated(&self, expression: &str) -> String {
        if expression.contains(" || ") {
            let mut values = expression.split(" || ").map(|part| self.evaluated(part));
            return values.by_ref().find(|value| is_true(value)).unwrap_or_default();
        }
        if expression.contains(" && ") {
            let values: Vec<String> = expression.split(" && ").map(|part| self.evaluated(part)).collect();
            let refused = values.iter().find(|value| !is_true(value));
            return refused.or(values.last()).cloned().unwrap_or_default();
        }
        if let Some((left, right)) = expression.split_once(" == ") {
            return (self.evaluated(left) == self.evaluated(right)).to_string();
        }
        if let Some(arguments) = expression.strip_prefix("format(").and_then(|rest| rest.strip_suffix(')')) {
            let values: Vec<String> = arguments.split(", ").map(|part| self.evaluated(part)).collect();
            let places = values[1..].iter().enumerate();
            return places
                .fold(values[0].clone(), |text, (at, value)| text.replace(&format!("{{{at}}}"), value));
        }
        let text = expression.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        match (text, expression) {
            (Some(text), _) => text.to_owned(),
            (None, "always()") => "true".to_owned(),
            (None, name) => {
                self.values.get(name).unwrap_or_else(|| panic!("nothing is known of `{name}`")).clone()
            }
        }
    }
}

fn is_true(value: &str) -> bool {
    !matches!(value, "" | "false")
}

fn owned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
