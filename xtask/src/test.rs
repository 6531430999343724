//! `cargo xtask test`: everything that must hold, in one command, on a laptop as in continuous integration.

use crate::environment;
use crate::postgres;
use crate::programs;
use crate::steps::{Outcome, Run, Step, command, has, quoted, run_all, run_command};

const STEPS: &[Step] = &[
    step("format", "the code is formatted", format),
    step("tidy", "the rules of this repository", || told("tidy", crate::tidy::run())),
    step("licences", "licences, sources and known faults of the dependencies", || {
        told("licences", crate::licences::run())
    }),
    step("lints", "clippy has nothing to say", lints),
    step("docs", "the site and the API documentation build without warnings", docs),
    step("postgresql", "the PostgreSQL that tests start for themselves is installed", postgres::install),
    step("rust", "unit, property, contract, REST, bad-input and crash tests", rust),
    step("stores", "REST, SQL and script cases, histories and guarantees on PostgreSQL", postgres::cases),
    step("sim", "a thousand seeds of simulated crashes, lost syncs, delays and clock jumps", || sim(&[])),
    step("build", "the server that the SDKs talk to", build),
    Step {
        uses_server: true,
        ..step(
            "cost",
            "what everyday operations cost, in instructions, is as in benches/cost.tsv",
            crate::cost::outcome,
        )
    },
    client("python", "the official Python SDK as a client", "tests/sdk/python/run"),
    client("javascript", "the official JavaScript SDK as a client", "tests/sdk/javascript/run"),
    client("go", "the official Go SDK as a client", "tests/sdk/go/run"),
    client("java", "the official Java SDK as a client", "tests/sdk/java/run"),
    client("rust-sdk", "the official Rust SDK as a client", "tests/sdk/rust/run"),
    // After the suites, whose builds and packages it uses again.
    Step {
        at_once: false,
        ..client(
            "packages",
            "packages for Python, JavaScript, Go and Java, and images, as strangers use them",
            "packages/run",
        )
    },
    // A browser computes much: beside the others it would only wait, and its tests with it.
    Step {
        at_once: false,
        ..client(
            "explorer",
            "the explorer in Chromium, and its committed page against its sources",
            "tests/explorer/run",
        )
    },
    Step {
        uses_server: true,
        ..step(
            "several",
            "the official SDKs as clients of three servers over one PostgreSQL",
            postgres::several,
        )
    },
    // Every fuzz target is a test of the step `rust` too, with changed seeds; this looks at what an input reaches.
    Step {
        is_long: true,
        ..step("fuzz", "a few seconds of every fuzz target, guided by coverage", || crate::fuzz::outcome(&[]))
    },
    step(
        "sanitizer",
        "the tests of scripts under AddressSanitizer, with and without the memory image",
        sanitizer,
    ),
];

const fn step(name: &'static str, summary: &'static str, run: fn() -> Outcome) -> Step {
    Step { name, summary, run: Run::Function(run), at_once: false, uses_server: false, is_long: false }
}

/// Suites of clients start servers of their own, and wait for one another's answers most of the time.
const fn client(name: &'static str, summary: &'static str, script: &'static str) -> Step {
    Step { name, summary, run: Run::Script(script), at_once: true, uses_server: true, is_long: false }
}

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<bool> {
    if arguments.iter().any(|argument| argument == "--list") {
        for step in STEPS {
            let when = if step.is_long { " (with --long)" } else { "" };
            println!("{:12} {}{when}", step.name, step.summary);
        }
        return Ok(true);
    }
    if arguments.iter().any(|argument| argument == "--long") {
        environment::make_long();
    }
    let only =
        arguments.iter().position(|argument| argument == "--only").and_then(|at| arguments.get(at + 1));
    let chosen: Vec<&Step> = match only {
        None => STEPS.iter().filter(|step| !step.is_long || environment::is_long()).collect(),
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
fn told(name: &str, result: anyhow::Result<bool>) -> Outcome {
    let repeat = format!("cargo xtask {name}");
    match result {
        Ok(true) => Outcome::Passed,
        Ok(false) => Outcome::failed("see its lines above", repeat),
        Err(error) => Outcome::failed(format!("{error:#}"), repeat),
    }
}

fn docs() -> Outcome {
    let mut doc = environment::program("cargo");
    // Environment instead of arguments: rustdoc takes its lints only there.
    doc.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--quiet", "--workspace", "--no-deps"]);
    told("site", crate::site::run()).and(run_command(&mut doc))
}

/// Without the tests in documentation, of which there are none (`tidy` looks), but which would be a compilation of each crate, and without
/// examples as tests, which have none either.
fn rust() -> Outcome {
    let mut test = programs::cargo_test(&[]);
    programs::run(test.args(["--workspace", "--tests"]), "cargo test")
}

/// Runs the simulator, by default for a thousand seeds.
pub(crate) fn sim(arguments: &[String]) -> Outcome {
    match example("seeds") {
        Ok(program) => run_command(environment::program(&program).args(arguments)),
        Err(failed) => failed,
    }
}

/// Builds an example, and gives its path. As a part of the whole workspace: chosen by its package, it would bring other features of
/// shared dependencies, and with them another build of most crates.
pub(crate) fn example(name: &str) -> Result<String, Outcome> {
    match command("cargo", &["build", "--quiet", "--workspace", &format!("--example={name}")]) {
        Outcome::Passed => {
            Ok(environment::target().join("debug/examples").join(name).to_string_lossy().into_owned())
        }
        failed => Err(failed),
    }
}

/// Runs clients beside a server that is killed and started again for some minutes, in release form.
pub(crate) fn soak(arguments: &[String]) -> anyhow::Result<bool> {
    let minutes: u64 = match arguments {
        [] => 10,
        [name, minutes] if name == "--minutes" => minutes.parse()?,
        _ => anyhow::bail!("soak [--minutes COUNT]"),
    };
    let mut soak = environment::program("cargo");
    soak.env("ASTRARIUM_SOAK_SECONDS", (minutes * 60).to_string());
    soak.args([
        "test",
        "--release",
        "--package=astrarium-server",
        "--test=crash",
        "history::",
        "--",
        "--nocapture",
    ]);
    Ok(matches!(run_command(&mut soak), Outcome::Passed))
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
    ["on", "off"].into_iter().map(|image| sanitized(image, &target)).fold(Outcome::Passed, Outcome::and)
}

fn sanitized(image: &str, target: &str) -> Outcome {
    const VARIABLES: [(&str, &str); 3] = [
        ("RUSTFLAGS", "-Zsanitizer=address"),
        ("CFLAGS", "-fsanitize=address -fno-omit-frame-pointer -g"),
        ("ASTRARIUM_TEST_SLOWNESS", "10"),
    ];
    let mut test = programs::cargo_test(&["+nightly"]);
    test.envs(VARIABLES).env("ASTRARIUM_TEST_MEMORY_IMAGE", image);
    test.args([
        "--package=astrarium-script",
        "--lib",
        "--test=script",
        target,
        "--target-dir=target/sanitizer",
    ]);
    let variables = VARIABLES.map(|(name, value)| format!("{name}={}", quoted(value))).join(" ");
    let repeat = format!(
        "{variables} ASTRARIUM_TEST_MEMORY_IMAGE={image} cargo +nightly test {target} --target-dir=target/sanitizer"
    );
    // Those that measure time are for programs at full speed.
    test.args(["--", "--skip=threads::", "--skip=time::"]);
    test.args(["--skip=a_page_that_takes_too_long_is_over", "--skip=the_shared_threads_have_survived"]);
    programs::run(&mut test, &repeat)
}
