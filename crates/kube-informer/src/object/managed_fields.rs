//! `metadata.managedFields` alone.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use serde::Deserialize;

use super::DecodeError;
use super::kind::{Encoded, Object as _};

/// Projection of an object onto its managers.
#[derive(Deserialize)]
struct Managed {
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    managed_fields: Option<Vec<ManagedFieldsEntry>>,
}

/// Decodes the managers of an object, and nothing else of it.
pub(crate) fn managed_fields(encoded: Encoded<'_>) -> Result<Vec<ManagedFieldsEntry>, DecodeError> {
    let managed = Managed::decode(encoded)?;
    Ok(managed.metadata.and_then(|metadata| metadata.managed_fields).unwrap_or_default())
}
