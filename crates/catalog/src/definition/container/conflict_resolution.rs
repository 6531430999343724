//! How a container settles writes that met in different regions. With one region there are none; the policy is kept for
//! its readers.

use crate::definition::members::Members;
use crate::definition::{Invalid, Named, excerpt};
use astrarium_value::PropertyPath;
use serde_json::{Value, json};

/// The property that decides when the author names none: the time of the last write.
const DEFAULT_PATH: &str = "/_ts";

/// Which of two conflicting writes stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConflictResolution {
    /// The one with the higher number at a path.
    LastWriterWins {
        /// The path of the number.
        path: PropertyPath,
    },
    /// The one a stored procedure chooses; without a procedure, both wait in the conflict feed.
    Custom {
        /// The link of the stored procedure, or nothing.
        procedure: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    LastWriterWins,
    Custom,
}

impl Named for Mode {
    const ALL: &'static [(Self, &'static str)] =
        &[(Self::LastWriterWins, "LastWriterWins"), (Self::Custom, "Custom")];
}

impl Default for ConflictResolution {
    fn default() -> Self {
        let path = PropertyPath::parse(DEFAULT_PATH).expect("the path is a constant");
        ConflictResolution::LastWriterWins { path }
    }
}

/// Reads the `conflictResolutionPolicy` member of a container.
pub(super) fn from_json(container: &Members<'_>) -> Result<ConflictResolution, Invalid> {
    let Some(policy) = container.object("conflictResolutionPolicy", "conflictResolutionPolicy")? else {
        return Ok(ConflictResolution::default());
    };
    let path = policy.text("conflictResolutionPath")?.filter(|path| !path.is_empty());
    let procedure = policy.text("conflictResolutionProcedure")?.filter(|link| !link.is_empty());
    match (policy.choice("mode")?.unwrap_or(Mode::LastWriterWins), path, procedure) {
        (Mode::LastWriterWins, _, Some(_)) => Err(Invalid::new(
            "A conflictResolutionProcedure needs the conflict resolution mode Custom; mode LastWriterWins takes a \
             conflictResolutionPath.",
        )),
        (Mode::Custom, Some(_), _) => Err(Invalid::new(
            "A conflictResolutionPath needs the conflict resolution mode LastWriterWins; mode Custom takes a \
             conflictResolutionProcedure.",
        )),
        (Mode::LastWriterWins, None, None) => Ok(ConflictResolution::default()),
        (Mode::LastWriterWins, Some(text), None) => match PropertyPath::parse(text) {
            Ok(path) => Ok(ConflictResolution::LastWriterWins { path }),
            Err(error) => {
                let shown = excerpt(text);
                Err(Invalid::new(format!(
                    "The conflictResolutionPath '{shown}' could not be accepted: {error}."
                )))
            }
        },
        (Mode::Custom, None, procedure) => {
            Ok(ConflictResolution::Custom { procedure: procedure.unwrap_or_default().to_owned() })
        }
    }
}

/// The `conflictResolutionPolicy` member as reads show it.
pub(super) fn to_json(policy: &ConflictResolution) -> Value {
    let (mode, path, procedure) = match policy {
        ConflictResolution::LastWriterWins { path } => (Mode::LastWriterWins, path.as_str(), ""),
        ConflictResolution::Custom { procedure } => (Mode::Custom, "", procedure.as_str()),
    };
    json!({"mode": mode.name(), "conflictResolutionPath": path, "conflictResolutionProcedure": procedure})
}
