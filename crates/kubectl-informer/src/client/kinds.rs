//! Resolves kinds by any of their names: `pods`, `po`, `deploy`, `certificates.pki.acme.com`,
//! `all`.

use std::time::Duration;

use kube_informer::Factory;
use kube_informer::client::{LookupError, Resources, Served};

use crate::client::connection::Connected;
use crate::failure::Failure;

/// Timeout of discovery.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Resolves the kinds named on the command line, without duplicates.
pub(crate) async fn find(connected: &Connected, words: &[String]) -> Result<Vec<Served>, Failure> {
    let discovery = Factory::new(connected.client.clone()).resources();
    let served = tokio::time::timeout(DISCOVERY_TIMEOUT, discovery).await.map_err(|_| {
        Failure::Unreachable(format!(
            "the server did not stderr within {} s what it serves",
            DISCOVERY_TIMEOUT.as_secs()
        ))
    })?;
    find_in(&served.map_err(|error| Failure::of_discovery(&error))?, words)
}

fn find_in(served: &Resources, words: &[String]) -> Result<Vec<Served>, Failure> {
    let mut found: Vec<Served> = Vec::new();
    for word in words.iter().flat_map(|word| word.split(',')).filter(|word| !word.is_empty()) {
        for kind in served.matching(word).map_err(|error| unknown(&error))? {
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

/// Prefix that kubectl writes before an object's name: `pod`, `deployment.apps`.
pub(crate) fn singular_name(kind: &Served) -> String {
    let dot = if kind.group().is_empty() { "" } else { "." };
    format!("{}{dot}{}", kind.kind().to_lowercase(), kind.group())
}
