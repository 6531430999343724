//! `cargo xtask site`: the documentation as plain static pages in `target/site`, readable without scripts and without a network.
//!
//! In: README, docs, and the READMEs of packages. Out: a page for each, a style, an index for the search.
//! Invariants
//! - Every link between pages leads to a page and a heading that exist; otherwise nothing is written, and the link is told.
//! - What stands in a page is text: markup in documents is shown, not obeyed.
//! - Pictures are copied beside the pages, so a site needs no repository.
//! - `docs/README.md` names every page of `docs`.
//!
//! Not here: what pages say. Pages that are made from the program are made where that is (`docs/settings.md`, `docs/sql-reference.md`).

mod page;
mod parts;

use crate::sources;
use anyhow::Context as _;
use page::Page;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A part of the navigation: its title, and the files of its pages.
struct Section {
    title: &'static str,
    files: &'static [&'static str],
}

const SECTIONS: &[Section] = &[
    Section {
        title: "Start",
        files: &[
            "README.md",
            "docs/README.md",
            "docs/quick-start-python.md",
            "docs/quick-start-javascript.md",
            "docs/quick-start-java.md",
            "docs/quick-start-go.md",
            "docs/quick-start-rust.md",
            "docs/quick-start-dotnet.md",
            "docs/moving-from-the-emulator.md",
            "docs/ci.md",
            "docs/troubleshooting.md",
        ],
    },
    Section {
        title: "Use",
        files: &[
            "docs/explorer.md",
            "docs/shell.md",
            "docs/tools.md",
            "docs/settings.md",
            "docs/sql-reference.md",
            "docs/request-units.md",
            "docs/limits.md",
            "docs/guarantees.md",
            "docs/operations.md",
            "docs/performance.md",
            "CHANGELOG.md",
        ],
    },
    Section {
        title: "Packages",
        files: &[
            "packages/README.md",
            "packages/python/README.md",
            "packages/npm/README.md",
            "packages/java/README.md",
            "packages/go/README.md",
            "packages/image/README.md",
        ],
    },
    Section { title: "Inside", files: &["ARCHITECTURE.md"] },
];

/// The page that leads to all others of its folder.
const INDEX: &str = "docs/README.md";

/// Folders whose further pages belong to the last section.
const FURTHER: [&str; 2] = ["docs", "docs/decisions"];

pub(crate) fn run() -> anyhow::Result<bool> {
    let sections = sections()?;
    let files: Vec<PathBuf> = sections.iter().flat_map(|(_, files)| files.clone()).collect();
    let mut pages = BTreeMap::new();
    for file in &files {
        let text = sources::read(&sources::root().join(file))?;
        pages.insert(file.clone(), Page::read(file, &text));
    }
    let mut problems: Vec<String> = pages.values().flat_map(|page| page.broken_links(&pages)).collect();
    problems.extend(missing_in_index(&pages));
    for problem in &problems {
        println!("site: {problem}");
    }
    if !problems.is_empty() {
        return Ok(false);
    }
    let target = sources::root().join("target/site");
    let navigation: Vec<(&str, Vec<&Page>)> = sections
        .iter()
        .map(|(title, files)| (*title, files.iter().filter_map(|file| pages.get(file)).collect()))
        .collect();
    std::fs::create_dir_all(&target).context("make target/site")?;
    for page in pages.values() {
        write(&target, &page.address(), &parts::document(page, &navigation, &pages))?;
        for picture in page.pictures() {
            let copied = target.join(page::picture_address(&picture));
            std::fs::copy(sources::root().join(&picture), &copied)
                .with_context(|| format!("copy {}", picture.display()))?;
        }
    }
    let all: Vec<&Page> = files.iter().filter_map(|file| pages.get(file)).collect();
    write(&target, "search-index.js", &parts::search_index(&all))?;
    write(&target, "search.js", include_str!("site/search.js"))?;
    write(&target, "style.css", include_str!("site/style.css"))?;
    println!("site: {} pages in {}", pages.len(), target.join("index.html").display());
    Ok(true)
}

/// Pages of `docs` that its index does not lead to. Decisions are a folder of their own.
fn missing_in_index(pages: &BTreeMap<PathBuf, Page>) -> Vec<String> {
    let Some(index) = pages.get(Path::new(INDEX)) else { return vec![format!("{INDEX} is missing")] };
    let linked = index.linked_files();
    let of_docs =
        pages.keys().filter(|file| file.parent() == Some(Path::new("docs")) && **file != index.file);
    of_docs
        .filter(|file| !linked.contains(file))
        .map(|file| format!("{INDEX}: there is no link to {}", file.display()))
        .collect()
}

fn write(target: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    std::fs::write(target.join(name), text).with_context(|| format!("write {name}"))
}

/// The sections with their files; what is in no other is in the last.
fn sections() -> anyhow::Result<Vec<(&'static str, Vec<PathBuf>)>> {
    let mut sections: Vec<(&str, Vec<PathBuf>)> = SECTIONS
        .iter()
        .map(|section| (section.title, section.files.iter().map(PathBuf::from).collect()))
        .collect();
    let mut further = Vec::new();
    for folder in FURTHER {
        for entry in std::fs::read_dir(sources::root().join(folder))? {
            let name = entry?.file_name();
            let file = Path::new(folder).join(&name);
            let is_page = file.extension().is_some_and(|ending| ending == "md");
            if is_page && !sections.iter().any(|(_, files)| files.contains(&file)) {
                further.push(file);
            }
        }
    }
    further.sort();
    if let Some((_, last)) = sections.last_mut() {
        last.extend(further);
    }
    Ok(sections)
}
