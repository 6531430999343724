//! `cargo xtask test`: everything that must hold, in one command, on a laptop as in continuous integration.

use crate::postgres;
use crate::steps::{Outcome, Step, command, has, run_all, script};

const STEPS: &[Step] = &[
    step("format", "the code is formatted", format),
    step("tidy", "the rules of this repository", || told(crate::tidy::run())),
    step("licences", "licences, sources and known faults of the dependencies", || {
        told(crate::licences::run())
    }),
    step("lints", "clippy has nothing to say", lints),
    step("docs", "the site and the API documentation build without warnings", docs),
    step("postgresql", "the PostgreSQL that tests start for themselves is installed", postgres::install),
    step("rust", "unit, property, contract, REST, bad-input and crash tests", rust),
    step("stores", "REST, SQL and script cases, histories and guarantees on PostgreSQL", postgres::cases),
    step("sim", "a thousand seeds of simulated crashes, lost syncs, delays and clock jumps", || {
        told(Ok(sim(&[])))
    }),
    step("build", "the server that the SDKs talk to", build),
    client("python", "the official Python SDK as a client", || script("tests/sdk/python/run")),
    client("javascript", "the official JavaScript SDK as a client", || script("tests/sdk/javascript/run")),
    client("go", "the official Go SDK as a client", || script("tests/sdk/go/run")),
    client("java", "the official Java SDK as a client", || script("tests/sdk/java/run")),
    client(
        "packages",
        "packages for Python, JavaScript, Go and Java, and images, as strangers use them",
        || script("packages/run"),
    ),
    client("rust-sdk", "the official Rust SDK as a client", || script("tests/sdk/rust/run")),
    // A browser computes much: beside the others it would only wait, and its tests with it.
    step("explorer", "the explorer in Chromium, and its committed page against its sources", || {
        script("tests/explorer/run")
    }),
    step("several", "the official SDKs as clients of three servers over one PostgreSQL", postgres::several),
    step("fuzz", "a few seconds of every fuzz target", || told(crate::fuzz::run(&[]))),
    step(
        "sanitizer",
        "the tests of scripts under AddressSanitizer, with and without the memory image",
        sanitizer,
    ),
];

const fn step(name: &'static str, summary: &'static str, run: fn() -> Outcome) -> Step {
    Step { name, summary, run, at_once: false }
}

/// Suites of clients start servers of their own, and wait for one another's answers most of the time.
const fn client(name: &'static str, summary: &'static str, run: fn() -> Outcome) -> Step {
    Step { name, summary, run, at_once: true }
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<bool> {
    if arguments.iter().any(|argument| argument == "--list") {
        for step in STEPS {
            println!("{:12} {}", step.name, step.summary);
        }
        return Ok(true);
    }
    let only =
        arguments.iter().position(|argument| argument == "--only").and_then(|at| arguments.get(at + 1));
    let chosen: Vec<&Step> = match only {
        None => STEPS.iter().collect(),
        Some(names) => {
            let names: Vec<&str> = names.split(',').collect();
            for name in &names {
                anyhow::ensure!(
                    STEPS.iter().any(|step| step.name == *name),
                    "there is no step {name}; see --list"
                );
            }
            STEPS.iter().filter(|step| names.contains(&step.name)).collect()
        }
    };
    Ok(run_all(&chosen))
}

fn format() -> Outcome {
    command("cargo", &["fmt", "--all", "--check"])
}

fn lints() -> Outcome {
    command("cargo", &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

/// How a tool of ours ended, which has printed what it found.
fn told(result: anyhow::Result<bool>) -> Outcome {
    match result {
        Ok(true) => Outcome::Passed,
        Ok(false) => Outcome::Failed("see the lines above".to_owned()),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

fn docs() -> Outcome {
    let site = told(crate::site::run());
    if !matches!(site, Outcome::Passed) {
        return site;
    }
    // Environment instead of arguments: rustdoc takes its lints only there.
    command("env", &["RUSTDOCFLAGS=-D warnings", "cargo", "doc", "--quiet", "--workspace", "--no-deps"])
}

/// Without the tests in documentation, of which there are none (`tidy` looks), but which would be a compilation of each crate.
fn rust() -> Outcome {
    command("cargo", &["test", "--workspace", "--all-targets"])
}

/// Runs the simulator, by default for a thousand seeds.
pub(crate) fn sim(arguments: &[String]) -> bool {
    let mut all = vec!["run", "--quiet", "--package=astrarium-sim", "--example=seeds", "--"];
    all.extend(arguments.iter().map(String::as_str));
    matches!(command("cargo", &all), Outcome::Passed)
}

/// Runs clients beside a server that is killed and started again for some minutes, in release form.
pub(crate) fn soak(arguments: &[String]) -> anyhow::Result<bool> {
    let minutes: u64 = match arguments {
        [] => 10,
        [name, minutes] if name == "--minutes" => minutes.parse()?,
        _ => anyhow::bail!("soak [--minutes COUNT]"),
    };
    let seconds = format!("ASTRARIUM_SOAK_SECONDS={}", minutes * 60);
    let test =
        ["cargo", "test", "--release", "--package=astrarium-server", "--test=crash", "history::", "--"];
    let all = [&[seconds.as_str()], &test[..], &["--nocapture"]].concat();
    Ok(matches!(command("env", &all), Outcome::Passed))
}

fn build() -> Outcome {
    command("cargo", &["build", "--release"])
}

/// The JavaScript engine is C, and we put its memory back under it. Without the image every piece of that memory comes from
/// the allocator, where the sanitizer sees it used too late or beyond its end.
fn sanitizer() -> Outcome {
    if !has("cargo", "+nightly") {
        return Outcome::Skipped("no nightly toolchain (rustup toolchain install nightly)".to_owned());
    }
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return Outcome::Skipped("the sanitizer is set up for Linux with glibc only".to_owned());
    }
    let target = format!("--target={}-unknown-linux-gnu", std::env::consts::ARCH);
    for image in ["on", "off"] {
        let outcome = command(
            "env",
            &[
                "RUSTFLAGS=-Zsanitizer=address",
                "CFLAGS=-fsanitize=address -fno-omit-frame-pointer -g",
                &format!("ASTRARIUM_TEST_MEMORY_IMAGE={image}"),
                "ASTRARIUM_TEST_SLOWNESS=10",
                "cargo",
                "+nightly",
                "test",
                "--package=astrarium-script",
                "--lib",
                "--test=script",
                &target,
                "--target-dir=target/sanitizer",
                // Those that measure time are for programs at full speed.
                "--",
                "--skip=threads::",
                "--skip=time::",
                "--skip=a_page_that_takes_too_long_is_over",
                "--skip=the_shared_threads_have_survived",
            ],
        );
        if !matches!(outcome, Outcome::Passed) {
            return outcome;
        }
    }
    Outcome::Passed
}
