//! Resolves kinds by any of their names: `pods`, `po`, `deploy`, `certificates.pki.acme.com`,
//! `all`.

use std::time::Duration;

use kube_informer::Factory;
use kube_informer::client::{LookupError, Resources, Served};

use crate::client::connection::Connected;
use crate::failure::Failure;
use crate::terminal::progress::Waiting;

/// Timeout of discovery.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Requests what the server serves.
pub(crate) async fn served(connected: &Connected) -> Result<Resources, Failure> {
    let _waiting = Waiting::on(format!("API discovery at {}", connected.address));
    let discovery = Factory::new(connected.client.clone()).resources();
    let served = tokio::time::timeout(DISCOVERY_TIMEOUT, discovery).await.map_err(|_| {
        Failure::unreachable(&format!(
            "API discovery at {}: no response within {} s",
            connected.address,
            DISCOVERY_TIMEOUT.as_secs()
        ))
    })?;
    served.map_err(|error| Failure::of_discovery(&connected.address, &error))
}

/// Resolves kinds, without duplicates.
pub(crate) fn find<'w>(served: &Resources, words: impl IntoIterator<Item = &'w str>) -> Result<Vec<Served>, Failure> {
    let mut found: Vec<Served> = Vec::new();
    for word in words.into_iter().flat_map(|word| word.split(',')).filter(|word| !word.is_empty()) {
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
            Failure::NotFound(format!("{error}; kubectl api-resources lists all"))
        }
        LookupError::Unknown { .. } => Failure::NotFound(error.to_string()),
        LookupError::Server(error) => Failure::of_discovery("the server", error),
        _ => Failure::Usage(error.to_string()),
    }
}
