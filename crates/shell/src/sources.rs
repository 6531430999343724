//! Where statements come from: the command line, a file, a pipe, or a person.

use crate::failure::{EXIT_UNREACHABLE, EXIT_USAGE, ShellFailure};
use crate::history::HistoryFile;
use crate::prompt;
use crate::session::Shell;
use crate::settings::ShellSettings;
use crate::statement;
use crate::terminal::{StandardStreams, coloured, tell};
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use tokio::runtime::Runtime;

/// Longest text of statements that is read; far more than people write.
const TEXT_BYTES_MAX: u64 = 256 << 20;

/// Runs the shell to its end.
pub fn run(settings: &ShellSettings) -> ExitCode {
    let surroundings = StandardStreams::found();
    match begun(settings, surroundings) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            let lead = coloured("error:", "1;31", surroundings.error_colours);
            tell(&format!("{lead} {}", failure.message(None)));
            let code = failure.exit_code();
            ExitCode::from(if code == EXIT_UNREACHABLE { code } else { EXIT_USAGE })
        }
    }
}

/// Fails for what is wrong before the first statement; otherwise the exit code.
fn begun(settings: &ShellSettings, surroundings: StandardStreams) -> Result<u8, ShellFailure> {
    let mut texts: Vec<String> = settings.statements.clone();
    let is_script = !texts.is_empty() || settings.file.is_some() || !surroundings.is_interactive();
    let mut shell = Shell::new(settings, surroundings)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| ShellFailure::told(format!("start: {error}")))?;
    if !is_script {
        return prompt::converse(shell, runtime, &HistoryFile::named(settings.history.as_deref()));
    }
    match &settings.file {
        Some(file) => texts.push(read(file)?),
        None if texts.is_empty() => texts.push(read(Path::new("-"))?),
        None => {}
    }
    Ok(run_all(&mut shell, &runtime, &texts, settings.keep_going))
}

fn run_all(shell: &mut Shell, runtime: &Runtime, texts: &[String], keeps_going: bool) -> u8 {
    let mut code = 0;
    for text in texts {
        let mut rest = text.as_str();
        while let Some((statement, next)) = statement::first(rest) {
            rest = &rest[next..];
            let Err(failure) = shell.run(runtime, statement) else { continue };
            match failure {
                ShellFailure::Leave | ShellFailure::OutputClosed => return code,
                ShellFailure::Told(_) | ShellFailure::Client(_)
                    if keeps_going && failure.exit_code() != EXIT_UNREACHABLE =>
                {
                    code = failure.exit_code();
                }
                _ => return failure.exit_code(),
            }
        }
    }
    code
}

/// A file of statements; `-` is standard input.
fn read(file: &Path) -> Result<String, ShellFailure> {
    let told = |what: String| ShellFailure::told(format!("read {}: {what}", file.display()));
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(TEXT_BYTES_MAX + 1).read_to_string(&mut text)
    } else {
        std::fs::File::open(file).and_then(|opened| opened.take(TEXT_BYTES_MAX + 1).read_to_string(&mut text))
    };
    let length = read.map_err(|error| told(error.to_string()))?;
    if length as u64 > TEXT_BYTES_MAX {
        return Err(told("it is too long for statements; items are for astrarium import".to_owned()));
    }
    Ok(text)
}
