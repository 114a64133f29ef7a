//! Options of create, update and patch requests: their query parameters.

use crate::http::query::Query;
use crate::http::status::{Cause, Status};

/// Whether a write is a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DryRun {
    /// The write is stored.
    #[default]
    No,
    /// All checks are done, but nothing is stored.
    All,
}

/// How unknown and duplicate fields are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// The sender of a write. What the server itself writes, or its user through the Rust API, is not
/// validated by kind: tests often need only a part of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Origin {
    #[default]
    Server,
    Client,
}

/// The options of one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: DryRun,
    pub(crate) field_validation: FieldValidation,
    pub(crate) origin: Origin,
}

/// The type of the request, which error messages name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionsOf {
    Create,
    Update,
    Patch,
    Apply,
}

impl WriteOptions {
    /// Parses a query.
    ///
    /// # Errors
    ///
    /// 422 with all errors.
    pub(crate) fn parse(query: &Query, of: OptionsOf) -> Result<Self, Status> {
        let mut causes = Vec::new();
        if of == OptionsOf::Patch && query.get("force").is_some() {
            causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
        }
        let manager = query.text("fieldManager");
        if of == OptionsOf::Apply && manager.is_empty() {
            causes.push(Cause::required("fieldManager", "is required for apply patch"));
        }
        if manager.len() > 128 {
            causes.push(Cause::new("FieldValueTooLong", "fieldManager", "Too long: may not be more than 128 bytes"));
        }
        let dry_run = dry_run(query.all("dryRun"), &mut causes);
        let field_validation = match query.text("fieldValidation") {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = "\"\", \"Ignore\", \"Strict\", \"Warn\"";
                causes.push(Cause::unsupported("fieldValidation", format!("{other:?}"), supported));
                FieldValidation::Warn
            }
        };
        if causes.is_empty() {
            return Ok(Self { dry_run, field_validation, origin: Origin::Client });
        }
        let kind = match of {
            OptionsOf::Create => "CreateOptions",
            OptionsOf::Update => "UpdateOptions",
            OptionsOf::Patch | OptionsOf::Apply => "PatchOptions",
        };
        Err(Status::invalid("meta.k8s.io", kind, "", causes))
    }
}

/// Parses the values of `dryRun`; only `All` is valid.
pub(crate) fn dry_run<'q>(values: impl Iterator<Item = &'q str>, causes: &mut Vec<Cause>) -> DryRun {
    let values: Vec<&str> = values.collect();
    if values.iter().any(|value| *value != "All") {
        let shown: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        causes.push(Cause::unsupported("dryRun", format!("[{}]", shown.join(",")), "\"All\""));
    }
    if values.is_empty() { DryRun::No } else { DryRun::All }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str, of: OptionsOf) -> Result<WriteOptions, Status> {
        WriteOptions::parse(&Query::parse(query), of)
    }

    #[test]
    fn a_dry_run_of_anything_but_all_is_refused() {
        assert_eq!(parse("dryRun=All", OptionsOf::Create).unwrap().dry_run, DryRun::All);
        assert_eq!(
            parse("dryRun=Foo", OptionsOf::Create).unwrap_err().message(),
            r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Foo"]: supported values: "All""#
        );
        assert_eq!(parse("dryRun=", OptionsOf::Update).unwrap_err().code(), 422);
    }

    #[test]
    fn force_belongs_to_apply_alone() {
        assert_eq!(
            parse("force=true", OptionsOf::Patch).unwrap_err().message(),
            r#"PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch"#
        );
        assert!(parse("force=true", OptionsOf::Update).is_ok());
    }
}
