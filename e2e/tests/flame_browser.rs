//! Flame graphs in the browsers that people open them with.

use e2e::{Workshop, run};
use std::fmt::Write;
use std::fs;

/// Draws folded stacks with names.
fn drawn(workshop: &Workshop, name: &str, flags: &[&str], files: &[&str]) {
    let mut command = run::mallow();
    command.current_dir(workshop.path()).arg("flamegraph").args(files).args(flags).args(["-o", name]);
    let _ = run::finish(&mut command).well();
}

/// A DHAT file has bytes, and folded stacks have none: the metric of one.svg is bytes.
fn made(workshop: &Workshop) {
    let dhat = |points: &[(&str, u64)]| {
        let mut frames = vec!["[root]".to_owned()];
        let mut out = String::new();
        for (stack, bytes) in points {
            let numbers: Vec<String> = stack
                .split(';')
                .rev()
                .map(|name| {
                    let frame = format!("0x1: {name} (app.c:7)");
                    let at = frames.iter().position(|known| *known == frame).unwrap_or_else(|| {
                        frames.push(frame);
                        frames.len() - 1
                    });
                    at.to_string()
                })
                .collect();
            let _ = write!(
                out,
                "{}{{\"tb\":{bytes},\"tbk\":1,\"tl\":1,\"mb\":{bytes},\"mbk\":1,\"gb\":{bytes},\"gbk\":1,\"eb\":0,\"ebk\":0,\"fs\":[{}]}}",
                if out.is_empty() { "" } else { "," },
                numbers.join(",")
            );
        }
        format!(
            "{{\"dhatFileVersion\":2,\"mode\":\"heap\",\"verb\":\"Allocated\",\"bklt\":true,\"bkacc\":false,\"tu\":\"us\",\"Mtu\":\"s\",\
             \"tuth\":1,\"cmd\":\"app\",\"pid\":1,\"tg\":5,\"te\":9,\"pps\":[{out}],\"ftbl\":{}}}",
            serde_json::to_string(&frames).unwrap()
        )
    };
    let one = [
        ("main;load_table;load_row", 500),
        ("main;load_table;load_cell", 300),
        ("main;load_table", 100),
        ("main;save", 100),
    ];
    let two = [
        ("main;load_table;load_row", 250),
        ("main;load_table;intern", 4000),
        ("main;load_table", 100),
        ("main;save", 130),
    ];
    fs::write(workshop.file("one.dhat"), dhat(&one)).unwrap();
    fs::write(workshop.file("two.dhat"), dhat(&two)).unwrap();
    drawn(workshop, "one.svg", &["--measure", "bytes"], &["one.dhat"]);
    drawn(workshop, "compared.svg", &["--measure", "bytes"], &["one.dhat", "two.dhat"]);
    let deep = |calls: usize| vec!["is_even;is_odd"; calls / 2].join(";");
    fs::write(workshop.file("deep"), format!("main;leaf 5000\nmain;{};leaf 16384\n", deep(16_000))).unwrap();
    drawn(workshop, "deep.svg", &["--unfold"], &["deep"]);
    let many = (0..300).flat_map(|module| (0..330).map(move |leaf| (module, leaf)));
    let many = many.map(|(module, leaf)| {
        let step = leaf / 30;
        (format!("main;module_{module}::run;step_{step}::work;leaf_{}", module * 330 + leaf), 1)
    });
    let many: Vec<(String, u64)> = many.collect();
    let many: Vec<(&str, u64)> = many.iter().map(|(stack, bytes)| (stack.as_str(), *bytes)).collect();
    fs::write(workshop.file("many.dhat"), dhat(&many)).unwrap();
    drawn(workshop, "many.svg", &["--measure", "bytes"], &["many.dhat"]);
}

fn looked_at(browser: &str) {
    let workshop = Workshop::new(&format!("flame-{browser}"));
    made(&workshop);
    let script = e2e::repository().join("e2e/tests/flame_browser/look.mjs");
    let mut node = run::command("node");
    let looked = run::finish(node.arg(script).arg(browser).arg(workshop.path())).well();
    println!("{}", looked.stdout);
}

#[test]
#[ignore = "needs a browser, which takes 300 MB: in `cargo xtask long`"]
fn chromium_zooms_searches_and_follows_keys() {
    looked_at("chromium");
}

#[test]
#[ignore = "needs a browser, which takes 300 MB: in `cargo xtask long`"]
fn firefox_zooms_searches_and_follows_keys() {
    looked_at("firefox");
}
