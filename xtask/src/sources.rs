//! Finding and reading the files of this repository.

use anyhow::Context as _;
use std::path::{Path, PathBuf};

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// All Rust files of our own, workspace and tools, without build products.
pub(crate) fn rust_files() -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in ["crates", "xtask", "benches", "fuzz", "tests"] {
        collect(&root().join(folder), &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !matches!(name, "target" | "node_modules" | ".venv") {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// A file's text.
pub(crate) fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}

/// A path as it stands in the repository.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// A function in a source file: its name, first line and number of lines.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) length: usize,
}

/// Functions of a formatted file: from the line with `fn` to the closing brace in the same column.
pub(crate) fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some(name) = function_name(line.trim_start()) else {
            continue;
        };
        let closing = format!("{}}}", " ".repeat(indent));
        let body = lines[index..].iter().position(|line| *line == closing);
        let semicolon = lines[index..].iter().position(|line| line.ends_with(';'));
        // A signature of a trait ends in a semicolon before any body begins.
        let opened = lines[index..].iter().position(|line| line.ends_with('{'));
        if let (Some(end), Some(opened)) = (body, opened)
            && semicolon.is_none_or(|semicolon| opened <= semicolon)
        {
            functions.push(Function { name: name.to_owned(), line: index + 1, length: end + 1 });
        }
    }
    functions
}

fn function_name(line: &str) -> Option<&str> {
    let mut rest = line;
    for word in ["pub(crate) ", "pub(super) ", "pub ", "const ", "async "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let rest = rest.strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}
