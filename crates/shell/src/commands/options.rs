//! `.mode`, `.set`, `.params`, `.help`.

use super::items::key_text;
use super::{COMMANDS, QUERY_HELP, nearest};
use crate::failure::ShellFailure;
use crate::json_text::{quoted, value_of_word};
use crate::rows::OutputMode;
use crate::session::Shell;
use crate::words::{CommandArguments, CommandWord};

/// What `.set` knows: name, values, what it does.
pub(crate) const SETTINGS: &[(&str, &str, &str)] = &[
    ("timing", "on|off", "charge and time after each statement"),
    ("system", "on|off", "the server's own properties in tables"),
    ("pager", "on|off", "long output through $PAGER"),
    ("key", "KEY|off", "queries and scripts look at this partition key only"),
    ("page", "ROWS|off", "rows of a page that the server is asked for"),
];

pub(super) fn mode(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &[], &[])?;
    let Some(word) = arguments.next() else {
        let name = shell.options.mode.name();
        return shell.output.line(name);
    };
    arguments.end()?;
    let known = OutputMode::NAMES.iter().find(|(name, _)| *name == word.text);
    let Some((_, mode)) = known else {
        let hint = nearest(&word.text, OutputMode::NAMES.iter().map(|(name, _)| *name));
        let hint = hint.map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
        return Err(ShellFailure::told(format!(
            "{:?} is no mode.{hint} There are table, json, jsonl and csv.",
            word.text
        )));
    };
    shell.options.mode = *mode;
    Ok(())
}

pub(super) fn set(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &[], &[])?;
    let Some(name) = arguments.next() else { return show_settings(shell) };
    let value = arguments.need("the value")?;
    arguments.end()?;
    let on_or_off = || match value.text.as_str() {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(ShellFailure::told(format!("{} is on or off, not {other:?}", name.text))),
    };
    let is_off = !value.is_quoted && value.text == "off";
    match name.text.as_str() {
        "timing" => shell.options.timing = on_or_off()?,
        "system" => shell.options.system = on_or_off()?,
        "pager" => shell.output.pages = on_or_off()?,
        "key" => shell.options.key = (!is_off).then(|| key_text(&value)),
        "page" if is_off => shell.options.page = None,
        "page" => {
            let rows = value.text.parse().ok().filter(|rows| (1..=10_000).contains(rows));
            shell.options.page =
                Some(rows.ok_or_else(|| ShellFailure::told("page is a number from 1 to 10000, or off"))?);
        }
        other => {
            let hint = nearest(other, SETTINGS.iter().map(|(name, _, _)| *name));
            let hint = hint.map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
            return Err(ShellFailure::told(format!("there is no setting {other:?}.{hint} .set shows all.")));
        }
    }
    Ok(())
}

fn show_settings(shell: &mut Shell) -> Result<(), ShellFailure> {
    let word = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    for (name, values, summary) in SETTINGS {
        let value = match *name {
            "timing" => word(shell.options.timing),
            "system" => word(shell.options.system),
            "pager" => word(shell.output.pages),
            "key" => shell.options.key.clone().unwrap_or_else(|| word(false)),
            _ => shell.options.page.map_or_else(|| word(false), |rows| rows.to_string()),
        };
        let line = format!("{name} {value}  ({values}: {summary})");
        let line = shell.output.for_eyes(&line).into_owned();
        shell.output.line(&line)?;
    }
    Ok(())
}

pub(super) fn parameters(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    if words.is_empty() {
        let lines: Vec<String> =
            shell.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        for line in lines {
            let line = shell.output.for_eyes(&line).into_owned();
            shell.output.line(&line)?;
        }
        return Ok(());
    }
    if let [only] = words.as_slice()
        && only.text == "clear"
    {
        shell.parameters.clear();
        return Ok(());
    }
    let mut read = Vec::new();
    for word in words {
        let parts = word.text.split_once('=').filter(|(name, _)| name.len() > 1 && name.starts_with('@'));
        let (name, value) = parts.ok_or_else(|| {
            ShellFailure::told(format!(
                "{:?} is no parameter: write @NAME=VALUE, with JSON or a plain text as value",
                word.text
            ))
        })?;
        let value = match value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
            Some(text) => quoted(text),
            None => value_of_word(value),
        };
        read.push((name.to_owned(), value));
    }
    shell.parameters.extend(read);
    Ok(())
}

pub(super) fn help(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &[], &[])?;
    let Some(word) = arguments.next() else { return help_screen(shell) };
    arguments.end()?;
    let name = word.text.as_str();
    if name.eq_ignore_ascii_case("select") {
        return QUERY_HELP.iter().try_for_each(|line| shell.output.line(line));
    }
    let is_meant = |own: &&str| *own == name || own.strip_prefix('.') == Some(name);
    let Some(entry) = COMMANDS.iter().find(|entry| entry.names.iter().any(is_meant)) else {
        return Err(super::unknown(name));
    };
    let usage = format!("{} {}", entry.names.join(", "), entry.usage);
    shell.output.line(usage.trim_end())?;
    shell.output.line(&format!("    {}", entry.summary))?;
    entry.details.iter().try_for_each(|line| shell.output.line(&format!("    {line}")))
}

/// All commands on one screen of 24 lines, with the next prompt.
fn help_screen(shell: &mut Shell) -> Result<(), ShellFailure> {
    shell.output.line(&format!(
        "{:<13}{}",
        "SELECT ...", "a query; ends with ; or an empty line, .cancel drops it"
    ))?;
    for entry in COMMANDS.iter().filter(|entry| entry.names[0] != ".help") {
        shell.output.line(&format!("{:<13}{}", entry.names[0], entry.summary))?;
    }
    shell.output.line(".help NAME says more. Tab completes, Ctrl-R searches, Ctrl-C cancels.")
}
