//! `cargo xtask test`: everything that must hold, in one command, on a laptop as in continuous integration.

use crate::steps::{Outcome, Step, command, has, run_all, script};

const STEPS: &[Step] = &[
    Step { name: "format", summary: "the code is formatted", run: format },
    Step { name: "lints", summary: "clippy has nothing to say", run: lints },
    Step { name: "tidy", summary: "the rules of this repository", run: tidy },
    Step { name: "docs", summary: "the API documentation builds without warnings", run: docs },
    Step { name: "rust", summary: "unit, property, contract, REST, bad-input and crash tests", run: rust },
    Step { name: "build", summary: "the server that the SDKs talk to", run: build },
    Step {
        name: "python",
        summary: "the official Python SDK as a client",
        run: || script("tests/sdk/python/run"),
    },
    Step {
        name: "javascript",
        summary: "the official JavaScript SDK as a client",
        run: || script("tests/sdk/javascript/run"),
    },
    Step { name: "go", summary: "the official Go SDK as a client", run: || script("tests/sdk/go/run") },
    Step { name: "java", summary: "the official Java SDK as a client", run: || script("tests/sdk/java/run") },
    Step {
        name: "rust-sdk",
        summary: "the official Rust SDK as a client",
        run: || script("tests/sdk/rust/run"),
    },
    Step { name: "fuzz", summary: "a few seconds of every fuzz target", run: fuzz },
    Step {
        name: "sanitizer",
        summary: "the tests of scripts under AddressSanitizer, with and without the memory image",
        run: sanitizer,
    },
    Step { name: "licences", summary: "licences and advisories of the dependencies", run: licences },
];

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

fn tidy() -> Outcome {
    match crate::tidy::run() {
        Ok(true) => Outcome::Passed,
        Ok(false) => Outcome::Failed("see the lines above".to_owned()),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

fn docs() -> Outcome {
    // Environment instead of arguments: rustdoc takes its lints only there.
    command("env", &["RUSTDOCFLAGS=-D warnings", "cargo", "doc", "--quiet", "--workspace", "--no-deps"])
}

fn rust() -> Outcome {
    command("cargo", &["test", "--workspace"])
}

fn build() -> Outcome {
    command("cargo", &["build", "--release"])
}

fn fuzz() -> Outcome {
    script("fuzz/smoke")
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

fn licences() -> Outcome {
    if !has("cargo-deny", "--version") {
        return Outcome::Skipped("cargo-deny is not installed (cargo install cargo-deny)".to_owned());
    }
    command("cargo", &["deny", "check", "licenses", "bans", "sources"])
}
