//! Folders that `initdb` has made: once in a program, then copied, which takes a fifth of the time.
//!
//! All clusters of a program have the same system identifier therefore. Who wants to tell them apart must do it by something
//! that it wrote there itself.

use crate::guard::Guard;
use crate::installation::{Installation, run};
use crate::{Error, While as _};
use std::collections::HashMap;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempDir;

/// The file with a cluster's settings, read after all that PostgreSQL comes with, but before what `ALTER SYSTEM` sets.
pub(crate) const SETTINGS_FILE: &str = "fixture.conf";

/// A folder made by `initdb`; its guard removes it when this program ends.
struct Template {
    data: PathBuf,
    _guard: Guard,
}

/// Fills an empty folder with a fresh cluster.
pub(crate) fn fill(installation: &Installation, data: &Path) -> Result<(), Error> {
    static TEMPLATES: Mutex<Option<HashMap<PathBuf, Template>>> = Mutex::new(None);
    let mut templates = TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner);
    let templates = templates.get_or_insert_default();
    let key = installation.folder().to_owned();
    if !templates.contains_key(&key) {
        templates.insert(key.clone(), make(installation)?);
    }
    let template = templates.get(&key).ok_or_else(|| Error::new("the template was just made"))?;
    let mut copy = installation.command(Path::new("cp"));
    run(copy.arg("-a").arg(template.data.join(".")).arg(data)).map(drop)
}

fn make(installation: &Installation) -> Result<Template, Error> {
    let folder = folder_for(installation, &std::env::temp_dir())?;
    let data = folder.path().join("data");
    let mut initdb = installation.program("initdb");
    initdb.args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]);
    run(initdb.args(["--username=postgres", "--pgdata"]).arg(&data))?;
    let settings = data.join("postgresql.conf");
    let given = std::fs::read_to_string(&settings).while_doing("read postgresql.conf")?;
    std::fs::write(&settings, format!("{given}\ninclude '{SETTINGS_FILE}'\n"))
        .while_doing("write postgresql.conf")?;
    let guard = Guard::start(installation, &data, folder.path())?;
    // From now on the guard's.
    let _ = folder.keep();
    Ok(Template { data, _guard: guard })
}

/// A new folder that belongs to the user that PostgreSQL runs as.
pub(crate) fn folder_for(installation: &Installation, within: &Path) -> Result<TempDir, Error> {
    let doing = format!("make a folder in {}", within.display());
    let folder =
        tempfile::Builder::new().prefix("astrarium-postgres-").tempdir_in(within).while_doing(&doing)?;
    // PostgreSQL insists on it.
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).while_doing(&doing)?;
    if let Some((user, group)) = installation.lent {
        chown(folder.path(), Some(user), Some(group)).while_doing(&doing)?;
    }
    Ok(folder)
}
