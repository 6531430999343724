//! Where log lines go: standard error, quiet unless something is wrong or asked for.

use crate::settings::{LogFormat, ServeSettings};
use anyhow::Context as _;
use tracing_subscriber::EnvFilter;

pub(crate) fn start(settings: &ServeSettings) -> anyhow::Result<()> {
    let requests = if settings.log_requests { ",request=info" } else { "" };
    let filter = EnvFilter::try_new(format!("{}{requests}", settings.log))
        .with_context(|| format!("--log {:?} is not a level or filter", settings.log))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Standard error may go away while the server runs, with the terminal that it was; complaining there about that would panic.
    let builder = builder.log_internal_errors(false);
    match settings.log_format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().init(),
    }
    Ok(())
}
