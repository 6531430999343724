//! The conversation with a person: a line editor around the shell.

use crate::completion;
use crate::failure::ShellFailure;
use crate::history::{ENTRIES_MAX, HistoryFile};
use crate::session::Shell;
use crate::statement::{self, TypedText};
use crate::table::cut;
use crate::terminal::coloured;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::{Hint, Hinter};
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use tokio::runtime::Runtime;

/// What the line editor asks of the shell.
struct ShellHelper {
    shell: Rc<RefCell<Shell>>,
    runtime: Rc<Runtime>,
    colours: bool,
}

/// Reads and runs statements until the person leaves. Fails if there is no account to talk to.
pub(crate) fn converse(
    mut shell: Shell,
    runtime: Runtime,
    history: &HistoryFile,
) -> Result<u8, ShellFailure> {
    runtime.block_on(async {
        shell.client.check().await?;
        if let Some((database, container)) = shell.place.container() {
            let (database, container) = (database.to_owned(), container.to_owned());
            shell.container(&database, &container).await?;
        } else if let Some(database) = shell.place.database() {
            shell.client.read_definition(&["dbs", database]).await?;
        }
        Ok::<_, ShellFailure>(())
    })?;
    let colours = shell.output.surroundings().colours;
    shell.remark(&format!("{} - .help tells what there is", shell.client.endpoint()));
    let failed = |error: ReadlineError| ShellFailure::told(format!("use the terminal: {error}"));
    let shell = Rc::new(RefCell::new(shell));
    let runtime = Rc::new(runtime);
    let mut editor = line_editor(colours).map_err(failed)?;
    editor.set_helper(Some(ShellHelper { shell: Rc::clone(&shell), runtime: Rc::clone(&runtime), colours }));
    for entry in history.load() {
        let _ = editor.add_history_entry(entry);
    }
    loop {
        let prompt = prompt_text(&shell.borrow());
        match editor.readline(prompt.as_str()) {
            Ok(text) => {
                let TypedText::Whole(text) = statement::typed(&text) else { continue };
                remember(&shell.borrow(), &mut editor, history, text);
                if !run_each(&shell, &runtime, text) {
                    return Ok(0);
                }
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => {}
            Err(ReadlineError::Eof) => return Ok(0),
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Asks for yes or no; anything but yes is no.
pub(crate) fn confirm(question: &str) -> Result<bool, ShellFailure> {
    let answer = ask(&format!("{question} [y/N] "))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Asks for a line.
pub(crate) fn ask(question: &str) -> Result<String, ShellFailure> {
    let config = Config::builder().color_mode(ColorMode::Disabled).build();
    let editor = Editor::<(), MemHistory>::with_history(config, MemHistory::new());
    let answer = editor.and_then(|mut editor| editor.readline(question));
    answer.map_err(|error| match error {
        ReadlineError::Interrupted | ReadlineError::Eof => ShellFailure::Interrupted,
        error => ShellFailure::told(format!("use the terminal: {error}")),
    })
}

fn line_editor(colours: bool) -> Result<Editor<ShellHelper, MemHistory>, ReadlineError> {
    let config = Config::builder()
        .max_history_size(ENTRIES_MAX)?
        .history_ignore_dups(true)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .completion_prompt_limit(200)
        .completion_show_all_if_ambiguous(true)
        .color_mode(if colours { ColorMode::Enabled } else { ColorMode::Disabled })
        .build();
    let history = MemHistory::with_config(&config);
    Editor::with_history(config, history)
}

/// Runs what was typed; false if the person wants to leave.
fn run_each(shell: &RefCell<Shell>, runtime: &Runtime, text: &str) -> bool {
    let mut rest = text;
    while let Some((statement, next)) = statement::first(rest) {
        rest = &rest[next..];
        match shell.borrow_mut().run(runtime, statement) {
            Ok(()) => {}
            Err(ShellFailure::Leave | ShellFailure::OutputClosed) => return false,
            // What comes after it was typed in the belief that it would work.
            Err(_) => return true,
        }
    }
    true
}

fn remember(shell: &Shell, editor: &mut Editor<ShellHelper, MemHistory>, history: &HistoryFile, text: &str) {
    let entry = text.trim_end();
    if entry.is_empty() || entry.starts_with(' ') || shell.holds_secret(entry) {
        return;
    }
    if editor.add_history_entry(entry).unwrap_or(false) {
        history.add(entry);
    }
}

/// Where one is; at most half of a line.
fn prompt_text(shell: &Shell) -> String {
    let width = shell.output.surroundings().size().map_or(80, |(columns, _)| columns);
    format!("{}> ", cut(&shell.place.to_string(), (width / 2).max(8)))
}

impl Completer for ShellHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = line.get(..position).unwrap_or(line);
        let Ok(mut shell) = self.shell.try_borrow_mut() else { return Ok((position, Vec::new())) };
        let offers = completion::complete(&mut shell, &self.runtime, before);
        let pairs = offers.words.into_iter().map(|word| {
            let display = word.trim_start_matches('.').to_owned();
            Pair { display: if display.is_empty() { word.clone() } else { display }, replacement: word }
        });
        Ok((offers.start, pairs.collect()))
    }
}

/// What is shown where a further line of a statement begins: what is open, and how to get out.
struct OpenHint {
    text: String,
}

impl Hint for OpenHint {
    fn display(&self) -> &str {
        &self.text
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Hinter for ShellHelper {
    type Hint = OpenHint;

    fn hint(&self, line: &str, position: usize, _: &Context<'_>) -> Option<OpenHint> {
        let before = line.strip_suffix('\n').filter(|_| position == line.len())?;
        let open = statement::open_end(before).map(|open| format!("{open} is open: ")).unwrap_or_default();
        Some(OpenHint { text: format!("{open}; or an empty line ends the statement, .cancel drops it") })
    }
}

impl Highlighter for ShellHelper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Owned(coloured(prompt, "1;34", self.colours))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(coloured(hint, "2", self.colours))
    }
}

impl Validator for ShellHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match statement::typed(context.input()) {
            TypedText::GoesOn => ValidationResult::Incomplete,
            TypedText::Whole(_) | TypedText::Dropped => ValidationResult::Valid(None),
        })
    }
}

impl Helper for ShellHelper {}
