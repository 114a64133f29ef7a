//! Leaving `metadata.managedFields` out of what is decoded.

/// What is left out of an object while it is decoded, at one place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Omit {
    /// Nothing: the place is elsewhere, or everything is decoded.
    #[default]
    Nothing,
    /// At the root: `managedFields` in `metadata`.
    ManagedFieldsOfMetadata,
    /// In the metadata: `managedFields`.
    ManagedFields,
}

impl Omit {
    /// Whether the field of this name is left out here.
    #[inline]
    pub(super) fn omits(self, name: &str) -> bool {
        self == Self::ManagedFields && name == "managedFields"
    }

    /// What is left out in the value of the field of this name.
    #[inline]
    pub(super) fn within(self, name: &str) -> Self {
        if self == Self::ManagedFieldsOfMetadata && name == "metadata" { Self::ManagedFields } else { Self::Nothing }
    }
}
