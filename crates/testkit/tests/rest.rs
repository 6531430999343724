//! Runs every `tests/rest/**/*.case` of the repository on every engine, each file on a fresh server; and on two servers over one storage
//! that are asked by turns. Those of `tests/rest/places` run on the engine that has several places.
//!
//! `UPDATE_CASES=1` replaces what follows `----` in cases that fail; review the difference afterwards.

use astrarium_testkit::{EngineKind, Options, Server, case_runner};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/rest");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let updating = std::env::var_os("UPDATE_CASES").is_some();
    let mut trials = Vec::new();
    let needs_places = |file: &Path| file.starts_with(root.join("places"));
    let engines = EngineKind::all().into_iter().filter(|engine| *engine != EngineKind::Places);
    for engine in engines.chain([EngineKind::Places]) {
        let is_first = matches!(engine, EngineKind::Memory | EngineKind::Places);
        let has_places = engine == EngineKind::Places;
        let own = files.iter().filter(|file| needs_places(file) == has_places);
        for file in own.filter(|_| !updating || is_first) {
            let name = file.strip_prefix(&root).expect("a file of the folder").display();
            let name = format!("{}::{name}", engine.name());
            let file = file.clone();
            trials.push(Trial::test(name, move || run(&file, &Server::start(Options::on(engine)), updating)));
        }
    }
    let has_postgres = EngineKind::all().contains(&EngineKind::Postgres);
    let shared = if has_postgres { EngineKind::Postgres } else { EngineKind::Memory };
    for file in files.iter().filter(|file| !updating && !needs_places(file)) {
        let name = file.strip_prefix(&root).expect("a file of the folder").display();
        let name = format!("two servers on {}::{name}", shared.name());
        let (file, options) = (file.clone(), Options::on(shared));
        trials.push(Trial::test(name, move || run(&file, &Server::start_two(&options), updating)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn run(file: &Path, server: &Server, updating: bool) -> Result<(), Failed> {
    let text = std::fs::read_to_string(file)?;
    if updating {
        let updated = case_runner::update(&text, server)?;
        if updated != text {
            std::fs::write(file, updated)?;
        }
        return Ok(());
    }
    case_runner::run(&text, server).map_err(|report| format!("{}, {report}", file.display()).into())
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
