//! `.sproc`: stored procedures.

use super::items::key_text;
use crate::failure::ShellFailure;
use crate::json_text::pretty;
use crate::session::Shell;
use crate::words::{CommandArguments, CommandWord};
use astrarium_client::ScriptKind;
use astrarium_wire::headers;
use astrarium_wire::percent::decode_once;
use serde_json::Value;

pub(super) async fn sproc(shell: &mut Shell, words: Vec<CommandWord>) -> Result<(), ShellFailure> {
    let mut arguments = CommandArguments::sort(words, &["--key"], &[])?;
    match arguments.need("ls or run")?.text.as_str() {
        "ls" => {
            arguments.end()?;
            list(shell).await
        }
        "run" => run(shell, arguments).await,
        other => Err(ShellFailure::told(format!(".sproc does ls and run, not {other:?}"))),
    }
}

async fn list(shell: &mut Shell) -> Result<(), ShellFailure> {
    let container = shell.current_container().await?;
    for script in container.scripts(ScriptKind::Procedure).await? {
        let name = script.get("id").and_then(Value::as_str).unwrap_or_default();
        let name = shell.output.for_eyes(name).into_owned();
        shell.output.line(&name)?;
    }
    Ok(())
}

async fn run(shell: &mut Shell, mut arguments: CommandArguments) -> Result<(), ShellFailure> {
    let name = arguments.need("the procedure's name")?.text;
    let given = arguments.next().map_or_else(|| "[]".to_owned(), |word| word.text);
    arguments.end()?;
    if !given.starts_with('[') || astrarium_value::json::Text::parse(given.as_bytes()).is_err() {
        return Err(ShellFailure::told("the arguments are a JSON array: .sproc run NAME [\"a\", 1]"));
    }
    let key = arguments.option("--key").map(key_text).or_else(|| shell.options.key.clone());
    let key = key.ok_or_else(|| {
        ShellFailure::told("a procedure runs in one logical partition: give its key with --key KEY, or once for all with .set key KEY")
    })?;
    let container = shell.current_container().await?;
    let answer = container.execute(&name, &key, &given, true).await?;
    if let Some(log) = answer.header(headers::SCRIPT_LOG_RESULTS).filter(|log| !log.is_empty()) {
        shell.remark(decode_once(log).as_deref().unwrap_or(log).trim_end());
    }
    let body = answer.text()?;
    if !body.is_empty() {
        let body = shell.output.json_for_eyes(&pretty(body, 0)).into_owned();
        shell.output.line(&body)?;
    }
    Ok(())
}
