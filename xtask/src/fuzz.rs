//! `cargo xtask fuzz`: builds the fuzz targets once, as one program, and runs each of them for a while.
//!
//! In: names of targets (all without any), `--seconds N`, `--address` for AddressSanitizer, which needs a nightly compiler.
//! Out: whether all ran without a finding. As many run at once as there are cores. A failing input is left in
//! `fuzz/artifacts/<target>`.
//! The flags are those that libFuzzer needs to see what an input reaches; without a sanitizer the stable compiler has them.

use crate::environment;
use crate::sources;
use crate::steps::{Failure, Outcome, at_once};
use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// For a few rounds in every run of the tests.
const SECONDS: u64 = 4;
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<bool> {
    Ok(findings(arguments)?.is_empty())
}

/// The same as a step of the tests.
pub(crate) fn outcome(arguments: &[String]) -> Outcome {
    match findings(arguments) {
        Ok(failures) => Outcome::of(failures),
        Err(error) => Outcome::failed(format!("{error:#}"), "cargo xtask fuzz"),
    }
}

fn findings(arguments: &[String]) -> anyhow::Result<Vec<Failure>> {
    let mut chosen = Vec::new();
    let (mut seconds, mut address) = (SECONDS, false);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => seconds = arguments.next().context("--seconds needs a number")?.parse()?,
            "--address" => address = true,
            name => chosen.push(name.to_owned()),
        }
    }
    let known = targets()?;
    if let Some(unknown) = chosen.iter().find(|name| !known.contains(name)) {
        anyhow::bail!("there is no target {unknown}, only {}", known.join(", "));
    }
    let names = if chosen.is_empty() { known } else { chosen };
    let program = build(address)?;
    let ended = at_once(&names, |name| fuzz(&program, name, seconds));
    let mut failures = Vec::new();
    for (name, ended) in names.iter().zip(ended) {
        let Err(problem) = ended else { continue };
        println!("fuzz: {problem:#}");
        failures.push(Failure { what: name.clone(), repeat: format!("cargo xtask fuzz {name}") });
    }
    println!("{} fuzz targets ran {seconds} seconds each, {} with a finding", names.len(), failures.len());
    Ok(failures)
}

/// Every file beside `main.rs` is a target of its name.
fn targets() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(sources::root().join("fuzz/fuzz_targets"))? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if name != "main" {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn build(address: bool) -> anyhow::Result<PathBuf> {
    let host = host()?;
    let (toolchain, flags, folder) = if address {
        ("+nightly", format!("{COVERAGE} -Zsanitizer=address"), "target/fuzz-address")
    } else {
        ("", COVERAGE.to_owned(), "target/fuzz")
    };
    let mut command = environment::program("cargo");
    command.args((!toolchain.is_empty()).then_some(toolchain));
    // With a target of its own, programs that only run while building are not instrumented.
    command.args(["build", "--quiet", "--release", "--manifest-path=fuzz/Cargo.toml"]);
    command.args([format!("--target={host}"), format!("--target-dir={folder}")]);
    command.env("RUSTFLAGS", flags);
    anyhow::ensure!(command.status().context("start cargo")?.success(), "the fuzz targets do not build");
    Ok(sources::root().join(folder).join(host).join("release/fuzz"))
}

fn host() -> anyhow::Result<String> {
    let output = environment::program("rustc").arg("-vV").output().context("start rustc")?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names its host")?.to_owned())
}

fn fuzz(program: &Path, name: &str, seconds: u64) -> anyhow::Result<()> {
    let fuzz = sources::root().join("fuzz");
    let (corpus, artifacts) = (fuzz.join("corpus").join(name), fuzz.join("artifacts").join(name));
    std::fs::create_dir_all(&corpus)?;
    std::fs::create_dir_all(&artifacts)?;
    let mut command = environment::program(&program.to_string_lossy());
    command.env("FUZZ_TARGET", name).arg(&corpus).arg(fuzz.join("seeds").join(name));
    command.args([format!("-max_total_time={seconds}"), "-timeout=5".to_owned(), "-verbosity=0".to_owned()]);
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    let end = lines[lines.len().saturating_sub(40)..].join("\n");
    anyhow::ensure!(output.status.success(), "target {name} ended with {}:\n{end}", output.status);
    Ok(())
}
