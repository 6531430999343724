//! `docs/settings.md` is made from the definitions of the settings, and is current.
//!
//! `UPDATE_DOCS=1 cargo test -p astrarium-server --bin astrarium settings::page` writes it anew.

use super::Arguments;
use clap::{ArgAction, Command, CommandFactory as _};
use std::fmt::Write as _;
use std::path::Path;

const BEGINNING: &str = "\
# Every setting

<!-- Made from the definitions of the settings by crates/server/src/settings/page.rs. -->

Each setting of `astrarium serve` is a flag or an environment variable; a flag counts more. Flags without a value are on with 1, true, yes or on in the
environment, and off with 0, false, no, off or nothing. A variable that begins with `ASTRARIUM_` and is no setting is told in the log. `astrarium help COMMAND` has the
same words.
";

#[test]
fn the_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/settings.md");
    let mut page = BEGINNING.to_owned();
    let mut command = Arguments::command();
    command.build();
    for subcommand in visible(&command) {
        describe(&mut page, subcommand, "astrarium", 2);
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let stored = std::fs::read_to_string(&path).expect("the page is there");
    assert!(stored == page, "docs/settings.md is not current; run this test with UPDATE_DOCS=1");
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

/// What a command is for and its settings, then the commands below it.
fn describe(page: &mut String, command: &Command, above: &str, level: usize) {
    let name = format!("{above} {}", command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let places: Vec<String> = command
        .get_arguments()
        .filter(|argument| argument.is_positional())
        .map(|argument| format!(" {}", value_names(argument)))
        .collect();
    let _ = write!(page, "\n{} `{name}{}`\n\n{}\n", "#".repeat(level), places.concat(), cell(&about));
    let own = |argument: &&clap::Arg| !argument.is_hide_set() && argument.get_id() != "help";
    if command.get_arguments().any(|argument| own(&argument)) {
        page.push_str("\n| setting | environment | default | meaning |\n|---|---|---|---|\n");
    }
    for argument in command.get_arguments().filter(own) {
        let variable =
            argument.get_env().map(|name| format!("`{}`", name.to_string_lossy())).unwrap_or_default();
        let meaning =
            argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(
            page,
            "| `{}` | {variable} | {} | {} |",
            flag(argument),
            default_of(argument),
            cell(&meaning)
        );
    }
    for subcommand in visible(command) {
        describe(page, subcommand, &name, level + 1);
    }
}

fn flag(argument: &clap::Arg) -> String {
    match argument.get_long() {
        None => value_names(argument),
        Some(long) if takes_value(argument) => format!("--{long} {}", value_names(argument)),
        Some(long) => format!("--{long}"),
    }
}

fn takes_value(argument: &clap::Arg) -> bool {
    !matches!(argument.get_action(), ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count)
}

fn value_names(argument: &clap::Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let possible = argument.get_possible_values();
    if takes_value(argument) && !possible.is_empty() {
        return possible.iter().map(clap::builder::PossibleValue::get_name).collect::<Vec<_>>().join("/");
    }
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn default_of(argument: &clap::Arg) -> String {
    if argument.is_hide_default_value_set() || !takes_value(argument) {
        return String::new();
    }
    let values: Vec<String> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    values.join(" ")
}

/// Text in a table: one line, with what would be markup or the end of the cell taken literally.
fn cell(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace('|', "\\|").replace('*', "\\*").replace('<', "&lt;").replace('[', "\\[")
}
