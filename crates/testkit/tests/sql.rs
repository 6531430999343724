//! Runs every `tests/sql/**/*.case` of the repository on every engine, each file on containers of its own.
//!
//! `UPDATE_CASES=1` replaces what follows `----` or `=>` where it fails; review the difference afterwards.

use astrarium_testkit::EngineKind;
use astrarium_testkit::sql::runner;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sql");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let updating = std::env::var_os("UPDATE_CASES").is_some();
    let mut trials = Vec::new();
    for engine in EngineKind::all() {
        for file in files.iter().filter(|_| !updating || engine == EngineKind::Memory) {
            let name = file.strip_prefix(&root).expect("a file of the folder").display();
            let name = format!("{}::{name}", engine.name());
            let file = file.clone();
            trials.push(Trial::test(name, move || run(&file, engine, updating)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn run(file: &Path, engine: EngineKind, updating: bool) -> Result<(), Failed> {
    let text = std::fs::read_to_string(file)?;
    if updating {
        let updated = runner::update(&text, engine)?;
        if updated != text {
            std::fs::write(file, updated)?;
        }
        return Ok(());
    }
    let outcome = runner::run(&text, engine);
    outcome.map(drop).map_err(|report| format!("{}\n{report}", file.display()).into())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("list the case files") {
        let path = entry.expect("list the case files").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "case") {
            files.push(path);
        }
    }
}
