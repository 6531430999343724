//! Completions of shells and manual pages, made from the definitions of commands and settings.

use crate::settings;
use anyhow::Context as _;
use clap::Command;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

/// What the program is called.
const NAME: &str = "astrarium";

/// Writes the completions of a shell to standard output.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut offered(), NAME, &mut text);
    write_out(&text)
}

/// Writes the manual page of a command, given by its words, to standard output; without words that of the program.
pub(crate) fn page(words: &[String]) -> anyhow::Result<ExitCode> {
    let all = named_pages();
    let name = std::iter::once(NAME).chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join("-");
    let found = all.iter().find(|(own, _)| *own == name);
    let known = || {
        let commands = all.iter().filter_map(|(name, _)| name.strip_prefix("astrarium-"));
        let commands: Vec<String> = commands.map(|name| name.replace('-', " ")).collect();
        format!("there is no command {:?}; there are {}", words.join(" "), commands.join(", "))
    };
    write_out(&found.with_context(known)?.1)
}

/// Writes all manual pages into a folder.
pub(crate) fn pages(folder: &Path) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(folder).with_context(|| format!("make the folder {}", folder.display()))?;
    for (name, text) in named_pages() {
        let path = folder.join(format!("{name}.1"));
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The program without the commands that it runs for itself, which some completions would offer.
fn offered() -> Command {
    let all = settings::definitions();
    let commands = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    Command::new(NAME).subcommands(commands.collect::<Vec<_>>()).version(settings::VERSION)
}

/// The page of every command by its name, `astrarium-store-add`.
fn named_pages() -> Vec<(String, Vec<u8>)> {
    let mut root = settings::definitions().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    add_pages(&root, NAME, &mut pages);
    pages
}

fn add_pages(command: &Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) {
    let mut text = Vec::new();
    if clap_mangen::Man::new(command.clone()).render(&mut text).is_ok() {
        pages.push((name.to_owned(), text));
    }
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        add_pages(below, &format!("{name}-{}", below.get_name()), pages);
    }
}

/// Writes to standard output. A reader that has seen enough is no failure.
fn write_out(text: &[u8]) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("write to standard output")
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}
