//! The line that is blamed when a count increases: the one that a person changed, and not the wrapper around `malloc` inside of it.

use e2e::Exit;
use e2e::gate::Suite;
use e2e::session::json;

/// Returns a project with its own wrappers around `malloc`, all in one file. `more` is a second copy in `parse`.
fn wrapped(more: &str) -> String {
    format!(
        "#include \"mallow.h\"\n#include <string.h>\n#define KEPT __attribute__((noinline))\n\
         KEPT static void *raw(size_t n) {{ void *p = malloc(n); mallow_keep(p); return p; }}\n\
         KEPT static void *pool_alloc(size_t n) {{ void *p = raw(n); mallow_keep(p); return p; }}\n\
         KEPT static char *lib_dup(const char *s) {{ char *p = pool_alloc(strlen(s) + 1); mallow_keep(p); return strcpy(p, s); }}\n\
         KEPT static void parse(const char *s) {{\n    char *a = lib_dup(s);\n{more}    free(a);\n}}\n\
         KEPT static void load(const char *s) {{ char *a = lib_dup(s); mallow_keep(a); free(a); parse(s); mallow_keep(a); }}\n\
         static void run(void *context) {{ int i; (void)context; for (i = 0; i < 1000; i++) {{ load(\"some words\"); mallow_keep(context); }} }}\n\
         int main(void) {{ mallow_ops(1000); mallow_measure(\"work\", run, NULL); return 0; }}\n"
    )
}

/// Returns the number of the line with a text.
fn line_of(source: &str, text: &str) -> usize {
    source.lines().position(|line| line.contains(text)).unwrap() + 1
}

#[test]
fn the_changed_line_is_named_and_not_the_wrapper() {
    let suite = Suite::new("wrappers", &wrapped(""));
    let _ = suite.check(&["--update"]).well();
    let changed = wrapped("    char *b = lib_dup(s); /* new */\n    free(b);\n");
    let line = line_of(&changed, "/* new */");
    suite.write("test_work.c", &changed);
    let finished = suite.check(&["--annotations"]).ended(Exit::Status(1));
    assert!(finished.stdout.contains(&format!("+1.000/op  parse (test_work.c:{line}) ← load")), "{finished}");
    assert!(finished.stderr.contains(&format!("file=test_work.c,line={line},")), "{finished}");
    // A call of a wrapper in a function that had none.
    let changed =
        wrapped("").replace("load(\"some words\");", "load(\"some words\"); free(lib_dup(\"more\"));");
    let line = line_of(&changed, "static void run");
    suite.write("test_work.c", &changed);
    let finished = suite.check(&["--annotations"]).ended(Exit::Status(1));
    assert!(finished.stdout.contains(&format!("+1.000/op  run (test_work.c:{line})")), "{finished}");
    assert!(finished.stderr.contains(&format!("file=test_work.c,line={line},")), "{finished}");
}

/// Lines that moved are not blamed, and the wrappers are shown after the line.
#[test]
fn lines_that_moved_are_not_to_blame() {
    let suite = Suite::new("moved", &wrapped(""));
    let _ = suite.check(&["--update"]).well();
    let changed =
        format!("/* a line */\n/* and another */\n{}", wrapped("    free(lib_dup(s)); /* new */\n"));
    let line = line_of(&changed, "/* new */");
    suite.write("test_work.c", &changed);
    let finished = suite.check(&[]).ended(Exit::Status(1));
    assert!(finished.stdout.contains(&format!("+1.000/op  parse (test_work.c:{line}) ← load")), "{finished}");
    let raw = line_of(&changed, "void *raw");
    assert!(finished.stdout.contains(&format!("by raw (test_work.c:{raw})")), "{finished}");
}

/// If a limit is exceeded and there is no baseline to compare with, the largest stacks are named; and no update can fix that.
#[test]
fn a_limit_without_a_baseline_names_the_largest_stacks() {
    let suite = Suite::new("limit", &wrapped(""));
    suite.write("mallow.toml", "[gate]\nsuites = [\".\"]\nlimit.allocations = 1500\n");
    let source = wrapped("");
    let finished = suite.check(&["--annotations"]).ended(Exit::Status(1));
    assert!(finished.stdout.contains("its limit allows 1,500"), "{finished}");
    for (function, text) in [("parse", "    char *a"), ("load", "static void load")] {
        let place = format!("{function} (test_work.c:{})", line_of(&source, text));
        assert!(finished.stdout.contains(&place), "{place}: {finished}");
    }
    assert!(finished.stdout.contains("1.000/op"), "{finished}");
    assert!(!finished.stdout.contains("To accept these values"), "{finished}");
    assert!(finished.stderr.contains("file=test_work.c,line="), "{finished}");
}

/// However many functions of the project a stack has, none of them is left out.
#[test]
fn functions_of_the_project_are_never_cut_away() {
    let names: Vec<String> = (0..14).map(|at| format!("step_number_{at}_of_the_whole_work")).collect();
    let mut source = "#include \"mallow.h\"\n#define KEPT __attribute__((noinline))\n\
                      KEPT static void last(int more) { void *p = malloc(8); mallow_keep(p); free(p);\n\
                      if (more) { p = malloc(16); mallow_keep(p); free(p); } }\n"
        .to_owned();
    let mut inner = "last".to_owned();
    for name in &names {
        source += &format!("KEPT static void {name}(int more) {{ {inner}(more); mallow_keep(&more); }}\n");
        inner.clone_from(name);
    }
    source += &format!(
        "static void run(void *context) {{ int i; (void)context; for (i = 0; i < 1000; i++) {inner}(MORE); }}\n\
         int main(void) {{ mallow_ops(1000); mallow_measure(\"work\", run, NULL); return 0; }}\n"
    );
    let suite = Suite::new("deep", &source.replace("MORE", "0"));
    let _ = suite.check(&["--update"]).well();
    suite.write("test_work.c", &source.replace("MORE", "1"));
    let finished = suite.check(&[]).ended(Exit::Status(1));
    for name in &names {
        assert!(finished.stdout.contains(name.as_str()), "{name} is cut away: {finished}");
    }
    assert!(
        finished.stdout.lines().all(|line| line.chars().count() <= 80
            || line.starts_with("Working folder")
            || line.starts_with("To accept")),
        "{finished}"
    );
}

/// A block that is freed before the next one is allocated could have been reused. Its line is named, though the number of allocations is the same.
#[test]
fn the_line_of_new_temporary_allocations_is_named() {
    let source = |work: &str| {
        format!(
            "#include \"mallow.h\"\n\
             static void run(void *context) {{\n    int i;\n    (void)context;\n    for (i = 0; i < 1000; i++) {{\n\
             \x20       void *a, *b;\n        {work}\n    }}\n}}\n\
             int main(void) {{ mallow_ops(1000); mallow_measure(\"work\", run, NULL); return 0; }}\n"
        )
    };
    let both =
        "a = malloc(16); mallow_keep(a);\n        b = malloc(16); mallow_keep(b);\n        free(b); free(a);";
    let suite = Suite::new("temporary", &source(both));
    suite.write("mallow.toml", "[gate]\nsuites = [\".\"]\nlimit.temporary = { abs = 10 }\n");
    let test = suite.only_test(3);
    assert_eq!(test["outcome"], "missing", "{test:#}");
    let _ = suite.check(&["--update"]).well();
    let _ = suite.check(&[]).well();
    let changed = source(
        "a = malloc(16); mallow_keep(a); free(a); /* new */\n        b = malloc(16); mallow_keep(b); free(b);",
    );
    suite.write("test_work.c", &changed);
    let finished = suite.check(&["--annotations"]).ended(Exit::Status(1));
    let line = line_of(&changed, "/* new */");
    let expected = "temporary: 2,000 per run, 1,000 more than the baseline's 1,000 (+1.000 per";
    let words = finished.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(expected), "{finished}");
    assert!(finished.stdout.contains(&format!("+1.000/op  run (test_work.c:{line})")), "{finished}");
    assert!(finished.stderr.contains(&format!("file=test_work.c,line={line},")), "{finished}");
    // With only a limit, the largest stacks are named.
    suite.write(
        "mallow.toml",
        "[gate]\nsuites = [\".\"]\nbaselines = \"none\"\nlimit.temporary = 500\nlimit.allocations = 2000\n",
    );
    let finished = suite.check(&[]).ended(Exit::Status(1));
    assert!(finished.stdout.contains("temporary allocations by stack; there is no baseline"), "{finished}");
    assert!(finished.stdout.contains(&format!("1.000/op  run (test_work.c:{line})")), "{finished}");
}

/// Without line tables there is no line to name, and the message says how to get them.
#[test]
fn a_program_without_lines_is_told_how_to_have_them() {
    let suite = Suite::new("lines", &wrapped(""));
    suite.write("mallow.toml", "[gate]\nsuites = [\".\"]\nc_flags = [\"-g0\"]\n");
    let _ = suite.check(&["--update"]).well();
    suite.write("test_work.c", &wrapped("    free(lib_dup(s));\n"));
    let finished = suite.check(&[]).ended(Exit::Status(1));
    assert!(finished.stdout.contains("line-tables-only"), "{finished}");
    // If a limit is exceeded and there is no baseline, too.
    let limit =
        "[gate]\nsuites = [\".\"]\nc_flags = [\"-g0\"]\nbaselines = \"none\"\nlimit.allocations = 10\n";
    suite.write("mallow.toml", limit);
    let finished = suite.check(&[]).ended(Exit::Status(1));
    assert!(finished.stdout.contains("line-tables-only"), "{finished}");
    suite.write("mallow.toml", "[gate]\nsuites = [\".\"]\n");
    let finished = suite.check(&[]).ended(Exit::Status(1));
    assert!(!finished.stdout.contains("line-tables-only"), "{finished}");
}

/// If a project's own allocator is new itself, stacks differ from the baseline's at that function. Named as plumbing,
/// its caller is the line to blame: in the table, the annotation, JUnit, Markdown and JSON, by `mallow.toml`, by its
/// test and by the command line.
#[test]
fn wrappers_that_are_named_as_plumbing_are_never_the_line() {
    let suite = Suite::new("plumbing", &wrapped(""));
    let manifest = |gate: &str, test: &str| {
        suite.write(
            "mallow.toml",
            &format!("[gate]\nsuites = [\".\"]\n{gate}\n[[test]]\nname = \"test_work\"\n{test}\n"),
        );
    };
    manifest("", "");
    let _ = suite.check(&["--update"]).well();
    let called =
        "    int k; char *a = 0; for (k = 0; k < 2; k++) { free(a); a = my_alloc_text(s); } /* new */\n";
    let source = wrapped("").replace("    char *a = lib_dup(s);\n", called).replace(
        "KEPT static void parse",
        "KEPT static char *my_alloc(size_t n) { char *p = raw(n); mallow_keep(p); return p; }\n\
         KEPT static char *my_alloc_text(const char *s) { char *p = my_alloc(strlen(s) + 1); mallow_keep(p); return p; }\n\
         KEPT static void parse",
    );
    suite.write("test_work.c", &source);
    let line = line_of(&source, "/* new */");
    let wrapper = line_of(&source, "static char *my_alloc_text");
    let blamed = |flags: &[&str]| -> (String, usize) {
        let (junit, markdown) = (suite.workshop.file("junit.xml"), suite.workshop.file("summary.md"));
        let sarif = suite.workshop.file("mallow.sarif");
        let [junit_name, markdown_name, sarif_name] =
            [&junit, &markdown, &sarif].map(|file| file.to_str().unwrap());
        let files =
            ["--junit", junit_name, "--markdown", markdown_name, "--sarif", sarif_name, "--annotations"];
        let finished = suite.check(&[flags, &files].concat()).ended(Exit::Status(1));
        let marked =
            finished.stderr.split("file=test_work.c,line=").nth(1).and_then(|rest| rest.split(',').next());
        let marked = marked.unwrap().parse().unwrap();
        let row =
            finished.stdout.lines().find_map(|line| line.split("+1.000/op  ≈ ").nth(1)).unwrap().to_owned();
        let place = row.split(" ←").next().unwrap().to_owned();
        for text in [std::fs::read_to_string(junit).unwrap(), std::fs::read_to_string(markdown).unwrap()] {
            assert!(text.contains(&place), "{place}: {text}");
        }
        let found = &json(&std::fs::read_to_string(sarif).unwrap())["runs"][0]["results"][0];
        let physical = &found["locations"][0]["physicalLocation"];
        assert_eq!(physical["artifactLocation"]["uri"], "test_work.c");
        assert_eq!(physical["region"]["startLine"].as_u64(), Some(marked as u64), "{found}");
        let report = json(&suite.check(&[flags, &["--json"]].concat()).ended(Exit::Status(1)).stdout);
        let change = &report["tests"][0]["changes"][0];
        let at = change["blamed"].as_u64().unwrap() as usize;
        let frame = change["stack"][at].as_u64().unwrap() as usize;
        let frame = &report["frames"][frame];
        assert_eq!(frame["line"].as_u64(), Some(marked as u64), "{frame}");
        (place, marked)
    };
    let of_wrapper = (format!("my_alloc_text (test_work.c:{wrapper})"), wrapper);
    let of_caller = (format!("parse (test_work.c:{line})"), line);
    assert_eq!(blamed(&[]), of_wrapper);
    assert_eq!(blamed(&["--plumbing", "my_alloc*"]), of_caller);
    assert_eq!(blamed(&["--plumbing", "other", "--plumbing", "my_alloc_text"]), of_caller);
    manifest("plumbing = [\"my_*\"]", "");
    assert_eq!(blamed(&[]), of_caller);
    manifest("plumbing = [\"raw\"]", "plumbing = [\"my_alloc\", \"my_alloc_text\"]");
    assert_eq!(blamed(&[]), of_caller);
    manifest("plumbin = [\"raw\"]", "");
    let finished = suite.check(&[]).ended(Exit::Status(2));
    assert!(finished.stderr.contains("did you mean `plumbing`?"), "{finished}");
}

/// What comes before the first region, and between two, has more frames than there is room for: ten million of them, each on stacks of its own.
#[test]
fn more_stacks_than_there_is_room_for_outside_of_regions_take_none_from_a_region() {
    let source = "#include \"mallow.h\"\n#define KEPT __attribute__((noinline))\n\
         static unsigned long bits[8];\n\
         KEPT static void deep(int depth) {\n    if (depth == 500) { void *p = malloc(8); mallow_keep(p); free(p); return; }\n\
         if (bits[depth / 64] >> (depth % 64) & 1) {\n        deep(depth + 1);\n        mallow_keep(bits);\n    }\n\
         else {\n        deep(depth + 1);\n        mallow_keep(&depth);\n    }\n}\n\
         static void busy(void) {\n    int i, word;\n    for (i = 0; i < 20000; i++) {\n        for (word = 0; word < 8; word++)\n\
         bits[word] = bits[word] * 6364136223846793005ul + 1442695040888963407ul + word;\n        deep(0);\n    }\n}\n\
         KEPT static void parse(void) { void *p = malloc(24); mallow_keep(p); free(p); } /* here */\n\
         static void run(void *context) { (void)context; parse(); }\n\
         int main(void) { busy(); mallow_measure(\"work\", run, NULL); busy(); mallow_measure(\"again\", run, NULL); return 0; }\n";
    let suite = Suite::new("many-stacks", source);
    suite.write("mallow.toml", "[gate]\nsuites = [\".\"]\nlimit.allocations = 0\n");
    let finished = suite.check(&[]).ended(Exit::Status(1));
    let place = format!("parse (test_work.c:{})", line_of(source, "/* here */"));
    assert_eq!(finished.stdout.matches(&place).count(), 2, "{finished}");
    assert!(!finished.stdout.contains("stack table"), "{finished}");
}
