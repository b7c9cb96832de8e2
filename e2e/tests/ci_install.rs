//! `integrations/ci/install.sh` installs what it is told to, and nothing that has another checksum.

use e2e::forge::{Forge, Kind};
use e2e::{Exit, Finished, Workshop, run};
use std::fs;

/// Stands in for mallow; only that it starts is of interest.
const PROGRAM: &str = "#!/bin/sh\necho \"mallow that was installed: $*\"\n";

fn install(workshop: &Workshop, from: &str, sha256: &str) -> Finished {
    let mut sh = run::command("/bin/sh");
    sh.arg(e2e::repository().join("integrations/ci/install.sh")).current_dir(workshop.path());
    sh.env("MALLOW_FROM", from).env("MALLOW_SHA256", sha256).env("MALLOW_TO", "to");
    let _ = fs::remove_dir_all(workshop.file("to"));
    run::finish(sh.env("GITHUB_PATH", workshop.file("path")))
}

/// The program, a tarball and a wheel with it; gives their checksums.
fn packages(workshop: &Workshop) -> Vec<String> {
    let line = "chmod +x mallow && mkdir -p t/mallow-1/bin && cp mallow t/mallow-1/bin && tar -czf m.tar.gz -C t mallow-1 && \
        python3 -c 'import zipfile; z = zipfile.ZipFile(\"m.whl\", \"w\"); z.write(\"mallow\", \"mallow_profiler-1.data/scripts/mallow\"); \
        z.writestr(\"mallow_profiler-1.dist-info/METADATA\", \"x\")' && sha256sum mallow m.tar.gz m.whl";
    fs::write(workshop.file("mallow"), PROGRAM).unwrap();
    let sums =
        run::finish(run::command("/bin/sh").args(["-c", line]).current_dir(workshop.path())).well().stdout;
    sums.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn a_program_a_tarball_and_a_wheel_are_installed_from_a_path_and_an_address() {
    let workshop = Workshop::new("ci-install");
    let sums = packages(&workshop);
    let forge = Forge::start(Kind::GitHub);
    for (name, sum) in ["mallow", "m.tar.gz", "m.whl"].iter().zip(&sums) {
        forge.put_file(&format!("/files/{name}"), fs::read(workshop.file(name)).unwrap());
        for from in [(*name).to_owned(), format!("{}/files/{name}", forge.address())] {
            let installed = install(&workshop, &from, &sum.to_uppercase()).well();
            assert_eq!(installed.stdout, "mallow that was installed: --version\n", "{installed}");
            let paths = fs::read_to_string(workshop.file("path")).unwrap();
            assert_eq!(paths.lines().last(), workshop.file("to/bin").to_str());
        }
    }
}

#[test]
fn what_has_another_checksum_or_none_is_not_installed() {
    let workshop = Workshop::new("ci-install-not");
    let sums = packages(&workshop);
    let forge = Forge::start(Kind::GitHub);
    forge.put_file("/m.tar.gz", b"something else".to_vec());
    let address = format!("{}/m.tar.gz", forge.address());
    let missing = format!("{}/gone.tar.gz", forge.address());
    for (from, sum, sentence) in [
        (address.as_str(), sums[1].as_str(), "it is not installed"),
        (&address, "", "an address needs a checksum"),
        (&missing, &sums[1], "mallow cannot be downloaded"),
        ("ftp://127.0.0.1/m.tar.gz", &sums[1], "an address begins with https://"),
        ("m.tar.gz", &sums[0], "it is not installed"),
        ("gone.tar.gz", "", "there is no file"),
        ("", "", "nothing says where mallow is"),
    ] {
        let refused = install(&workshop, from, sum).ended(Exit::Status(2));
        assert!(refused.stderr.contains(sentence), "{from}: {refused}");
        assert!(!workshop.file("to/bin/mallow").exists(), "{from}");
    }
}
