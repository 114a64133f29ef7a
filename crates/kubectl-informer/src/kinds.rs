//! Kinds by the names people give them: `pods`, `po`, `deploy`, `certificates.pki.acme.com`, `all`.

use std::time::Duration;

use kube_informer::{Factory, LookupError, Resources, Served};

use crate::connection::Connected;
use crate::failure::Failure;

/// How long finding out what there is may take if nothing else is said.
const PATIENCE: Duration = Duration::from_secs(30);

/// The kinds that words of the command line mean, each once.
pub(crate) async fn find(connected: &Connected, words: &[String]) -> Result<Vec<Served>, Failure> {
    let asking = Factory::new(connected.client.clone()).resources();
    let served = tokio::time::timeout(PATIENCE, asking).await.map_err(|_| {
        Failure::Unreachable(format!("the server did not say within {} s what it serves", PATIENCE.as_secs()))
    })?;
    find_in(&served.map_err(|error| Failure::of_discovery(&error))?, words)
}

fn find_in(served: &Resources, words: &[String]) -> Result<Vec<Served>, Failure> {
    let mut found: Vec<Served> = Vec::new();
    for word in words.iter().flat_map(|word| word.split(',')).filter(|word| !word.is_empty()) {
        for kind in served.meant_by(word).map_err(|error| unknown(&error))? {
            if !found.contains(kind) {
                found.push(kind.clone());
            }
        }
    }
    Ok(found)
}

fn unknown(error: &LookupError) -> Failure {
    match error {
        LookupError::Unknown { suggestions, .. } if suggestions.is_empty() => {
            Failure::NotFound(format!("{error}; kubectl api-resources lists what there is"))
        }
        LookupError::Unknown { .. } => Failure::NotFound(error.to_string()),
        LookupError::Server(error) => Failure::of_discovery(error),
        _ => Failure::Usage(error.to_string()),
    }
}

/// `pod`, `deployment.apps`: as kubectl writes it in front of an object's name.
pub(crate) fn singular_name(kind: &Served) -> String {
    let dot = if kind.group().is_empty() { "" } else { "." };
    format!("{}{dot}{}", kind.kind().to_lowercase(), kind.group())
}
