//! Writes kubeconfigs, which may contain a token.

use std::io::{self, Write as _};
use std::path::Path;

use tempfile::{NamedTempFile, TempPath};

/// Writes a kubeconfig to a new file in the directory of temporary files; it is deleted on drop.
pub(crate) fn write_temporary(kubeconfig: &str) -> io::Result<TempPath> {
    Ok(create(&std::env::temp_dir(), kubeconfig)?.into_temp_path())
}

/// Writes a kubeconfig atomically: to a new file, which is then renamed.
pub(crate) fn publish(kubeconfig: &str, file: &Path) -> io::Result<()> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = create(directory, kubeconfig)?;
    written.persist(file).map(drop).map_err(|error| error.error)
}

/// Creates a file with an unpredictable name and, on Unix, mode 0600. It is created exclusively, so
/// that a file or a link that another user put there is never written to.
fn create(directory: &Path, text: &str) -> io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("kubectl-informer-").suffix(".yaml").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}
