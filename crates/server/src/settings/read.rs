//! Reads the command line and the environment, and says what is wrong with them and where it came from.

use super::{Arguments, ServeSettings, conflict};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _, FromArgMatches as _};
use std::ffi::OsString;

/// The definitions of all commands and their settings.
pub(crate) fn definitions() -> Command {
    Arguments::command()
}

/// The arguments of this process; ends it with a message if they are wrong.
pub(crate) fn read() -> Arguments {
    read_words(&std::env::args_os().collect::<Vec<OsString>>())
}

/// The settings of `serve` that these flags and the environment make; ends the process with a message if they are wrong.
pub(crate) fn serve_settings(flags: &[OsString]) -> ServeSettings {
    let words = [&["astrarium".into(), "serve".into()], flags].concat();
    match read_words(&words).command {
        super::Command::Serve(settings) => *settings,
        _ => unreachable!("the word says serve"),
    }
}

fn read_words(words: &[OsString]) -> Arguments {
    let mut command = Arguments::command();
    let matches = match command.try_get_matches_from_mut(words) {
        Ok(matches) => matches,
        Err(error) => refuse(&command, words, &error),
    };
    if let Some(own) = matches.subcommand_matches("serve")
        && let Some(subcommand) = command.find_subcommand_mut("serve")
    {
        let variable = |id: &str| variable_of(subcommand, |argument| argument.get_id() == id);
        if let Some(contradiction) = conflict::find(own, variable) {
            subcommand.error(ErrorKind::ArgumentConflict, contradiction).exit();
        }
    }
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Variables that look like settings and are none, most likely misspelt.
pub(crate) fn unknown_variables() -> Vec<String> {
    let command = Arguments::command();
    let known: Vec<&str> = command
        .get_subcommands()
        .flat_map(Command::get_arguments)
        .filter_map(|argument| argument.get_env()?.to_str())
        .collect();
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut unknown: Vec<String> =
        names.filter(|name| looks_like_setting(name) && !known.contains(&name.as_str())).collect();
    unknown.sort();
    unknown
}

/// Orchestrators set variables of their own for a service of our name: `ASTRARIUM_SERVICE_HOST`, `ASTRARIUM_PORT_8081_TCP`.
/// And our client tests find the program by `ASTRARIUM_BIN`.
fn looks_like_setting(name: &str) -> bool {
    name.strip_prefix("ASTRARIUM_").is_some_and(|rest| {
        !rest.starts_with("SERVICE_") && rest != "PORT" && !rest.starts_with("PORT_") && rest != "BIN"
    })
}

/// Prints an error of the library, with what it cannot know: the variable that a wrong value came from, where flags go.
fn refuse(command: &Command, words: &[OsString], error: &clap::Error) -> ! {
    let first = words.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let remark = if let Some(variable) = wrong_variable(command, words, error) {
        format!("The value comes from the environment variable {variable}.")
    } else if error.kind() == ErrorKind::UnknownArgument && first.starts_with('-') {
        format!("Settings follow a command: astrarium serve {first}")
    } else {
        error.exit()
    };
    // The library's own sentence comes first.
    let _ = error.print();
    eprintln!("{remark}");
    std::process::exit(error.exit_code());
}

fn wrong_variable(command: &Command, words: &[OsString], error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return None };
    let long = argument.strip_prefix("--")?;
    let long = long.split([' ', '=', '[']).next()?;
    let (flag, with_value) = (format!("--{long}"), format!("--{long}="));
    let is_flag =
        |word: &OsString| word.to_str().is_some_and(|word| word == flag || word.starts_with(&with_value));
    let subcommand = words.get(1).and_then(|name| command.find_subcommand(name))?;
    if words.iter().any(is_flag) {
        return None;
    }
    variable_of(subcommand, |argument| argument.get_long() == Some(long))
}

fn variable_of(command: &Command, is_meant: impl Fn(&clap::Arg) -> bool) -> Option<String> {
    let argument = command.get_arguments().find(|argument| is_meant(argument))?;
    Some(argument.get_env()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ArgAction;

    /// Every setting has a variable, and every switch takes the words of `value::boolean`.
    #[test]
    fn settings_are_alike() {
        let command = Arguments::command();
        let serve = command.find_subcommand("serve").expect("the command");
        for argument in serve.get_arguments().filter(|argument| argument.get_id() != "help") {
            let (name, parser) = (argument.get_id(), format!("{:?}", argument.get_value_parser()));
            assert!(argument.get_env().is_some(), "{name} has no variable");
            let is_switch = matches!(argument.get_action(), ArgAction::SetTrue);
            assert!(
                !is_switch || parser != "ValueParser::bool",
                "{name} needs value_parser = value::boolean"
            );
        }
    }
}
