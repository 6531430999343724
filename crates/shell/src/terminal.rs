//! What the standard streams are: a terminal of some size or not, with colours or without.

use std::io::{IsTerminal as _, Write as _};

/// Columns and lines where a terminal does not tell.
const USUAL_SIZE: (usize, usize) = (80, 24);

/// The surroundings that output depends on, as found at the start; sizes are asked for when needed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StandardStreams {
    /// Standard output is a terminal.
    pub(crate) shows: bool,
    /// Standard input is a terminal.
    pub(crate) asks: bool,
    /// Colours may be used on standard output.
    pub(crate) colours: bool,
    /// Colours may be used on standard error.
    pub(crate) error_colours: bool,
}

impl StandardStreams {
    pub(crate) fn found() -> StandardStreams {
        let (shows, errors) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let is_wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        StandardStreams {
            shows,
            asks: std::io::stdin().is_terminal(),
            colours: shows && is_wanted,
            error_colours: errors && is_wanted,
        }
    }

    /// Whether a person sits there.
    pub(crate) fn is_interactive(self) -> bool {
        self.shows && self.asks
    }

    /// Columns and lines of the terminal; none if the output goes elsewhere.
    pub(crate) fn size(self) -> Option<(usize, usize)> {
        if !self.shows {
            return None;
        }
        let told = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let told = told.map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        Some(told.filter(|(columns, lines)| *columns > 0 && *lines > 0).unwrap_or(USUAL_SIZE))
    }
}

/// Says something on standard error; if nobody can be told, that is no reason to end.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Text in a colour of the terminal: the number of a graphic rendition, `"31"` for red.
pub(crate) fn coloured(text: &str, rendition: &str, is_on: bool) -> String {
    if is_on { format!("\u{1b}[{rendition}m{text}\u{1b}[0m") } else { text.to_owned() }
}
