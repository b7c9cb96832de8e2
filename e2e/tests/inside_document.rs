//! The two versions of `programs/csv-aggregate`, 374,540 and 45 allocations, in all ways in which mallow counts:
//! recorded unchanged, recorded with `mallow-alloc`, profiled from inside, and that in DHAT's format.

use e2e::run;
use e2e::session::{json, metric, report_of};
use e2e::{Session, Workshop};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const PROGRAMS: [&str; 3] = ["csv-generate", "csv-map-per-row", "csv-reused-record"];

/// Builds the programs with these features, in the same place as `cargo xtask bench --only inside`, and copies them into a folder of the workshop.
fn built(workshop: &Workshop, features: &str, folder: &str) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("inside-cost");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--locked", "--features", features, "--target-dir"]).arg(&target);
    let _ = run::finish(cargo.current_dir(e2e::repository().join("programs/csv-aggregate"))).well();
    std::fs::create_dir_all(workshop.file(folder)).unwrap();
    for program in PROGRAMS {
        std::fs::copy(target.join("release").join(program), workshop.file(folder).join(program)).unwrap();
    }
}

/// The path of the programs. It is as long as `target/release`, because the document's bytes include the program's name, which is an allocated block.
const PLAIN: &str = "target/without";
const WITH_THE_CRATE: &str = "target/insides";

/// Returns allocations and bytes, of all sites and of those below `csv_aggregate::run`, which is all that `main` does.
fn metrics(report: &Value) -> [[u64; 2]; 2] {
    let of = |object: &Value| ["allocations", "bytes"].map(|key| metric(object, key));
    let sites = report["sites"].as_array().unwrap().iter();
    let below = sites.filter(|site| {
        site["frames"].as_array().unwrap().iter().any(|it| it["function"] == "csv_aggregate::run")
    });
    let sum = below.map(of).fold([0, 0], |sum, site| [sum[0] + site[0], sum[1] + site[1]]);
    [of(&report["totals"]), sum]
}

fn recorded(workshop: &Workshop, program: &str) -> [[u64; 2]; 2] {
    let session = Session::new(workshop.path(), &[program, "test.csv"]);
    let _ = session.record().well();
    metrics(&session.report(&[]))
}

fn profiled(workshop: &Workshop, program: &str, trace: &str) -> [[u64; 2]; 2] {
    let mut command = run::command(program);
    if trace.ends_with("json") {
        command.env("INSIDE_DHAT", "1");
    }
    let _ = run::finish(command.arg("test.csv").current_dir(workshop.path())).well();
    metrics(&json(&report_of(&workshop.file(trace), &[]).well().stdout))
}

/// What Rust's runtime allocates before `main`, where a guard in `main` cannot see it: 9 blocks.
const BEFORE_MAIN: u64 = 9;

#[test]
#[ignore = "a minute of building: in `cargo xtask long`"]
fn the_document_is_counted_the_same_recorded_and_from_inside() {
    let workshop = Workshop::new("inside-document");
    built(&workshop, "", PLAIN);
    built(&workshop, "mallow", WITH_THE_CRATE);
    let generator = workshop.file(PLAIN).join("csv-generate");
    let _ = run::finish(run::command(generator).arg(workshop.file("test.csv"))).well();
    // The bytes equal valgrind's, too.
    for (name, allocations, bytes) in
        [("csv-map-per-row", 374_540, 24_833_419), ("csv-reused-record", 45, 9_485_005)]
    {
        let [whole, below_run] = recorded(&workshop, &format!("{PLAIN}/{name}"));
        assert_eq!(whole, [allocations, bytes], "{name}");
        assert_eq!(below_run[0], allocations - BEFORE_MAIN, "{name}");
        let program = format!("{WITH_THE_CRATE}/{name}");
        assert_eq!(recorded(&workshop, &program), [whole, below_run], "{name} with the crate, recorded");
        for trace in ["inside.mallow", "inside.json"] {
            assert_eq!(profiled(&workshop, &program, trace), [below_run; 2], "{name}, {trace}");
        }
    }
}
