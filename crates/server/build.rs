//! Puts the version into the program: `0.1.0 (80d8090108e1)`, or without the commit where that is not known.
//!
//! The commit comes from the variable `ASTRARIUM_COMMIT`, or is read from the repository's files without git. An archive of the
//! sources has neither, and builds. The script runs again when another commit is checked out, and not otherwise.

use std::fs;
use std::path::{Path, PathBuf};

/// Digits of a commit that are shown.
const DIGITS: usize = 12;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ASTRARIUM_COMMIT");
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    let root = Path::new(&own).join("../..");
    let told = std::env::var("ASTRARIUM_COMMIT").ok();
    let commit = told.or_else(|| checked_out(&root.join(".git"))).filter(|text| is_commit(text.trim()));
    let version = env!("CARGO_PKG_VERSION");
    match commit.as_deref().and_then(|commit| commit.trim().get(..DIGITS)) {
        Some(commit) => println!("cargo::rustc-env=ASTRARIUM_VERSION={version} ({commit})"),
        None => println!("cargo::rustc-env=ASTRARIUM_VERSION={version}"),
    }
}

fn is_commit(text: &str) -> bool {
    text.len() >= DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The commit that is checked out.
fn checked_out(git: &Path) -> Option<String> {
    // In a further working tree, a file says where the folder is.
    let folder = match fs::read_to_string(git) {
        Ok(text) => git.parent()?.join(text.strip_prefix("gitdir:")?.trim()),
        Err(_) => git.to_owned(),
    };
    let common = match fs::read_to_string(folder.join("commondir")) {
        Ok(text) => folder.join(text.trim()),
        Err(_) => folder.clone(),
    };
    // The log of HEAD changes with every commit, wherever the branch is kept.
    watch(&folder.join("logs/HEAD"));
    let head = read(folder.join("HEAD"))?;
    let Some(branch) = head.trim().strip_prefix("ref:").map(str::trim) else { return Some(head) };
    read(common.join(branch)).or_else(|| {
        let packed = read(common.join("packed-refs"))?;
        let line = packed.lines().find(|line| line.ends_with(&format!(" {branch}")))?;
        line.split(' ').next().map(str::to_owned)
    })
}

fn read(path: PathBuf) -> Option<String> {
    watch(&path);
    fs::read_to_string(path).ok()
}

/// Has the script run again when a file changes; one that is not there would have it run every time.
fn watch(path: &Path) {
    if path.is_file() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}
