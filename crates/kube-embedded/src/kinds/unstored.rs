//! Kinds of requests and responses that no server stores: reviews, and the bodies of subresources.

use std::sync::{Arc, OnceLock};

use super::{Kind, Part, builtin};

/// The kinds, those with a path of their own in discovery order. Each line of the table has group,
/// version, kind, plural, singular, scope, verbs and an empty object; the others have no verbs.
fn all() -> &'static [Arc<Kind>] {
    static ALL: OnceLock<Vec<Arc<Kind>>> = OnceLock::new();
    ALL.get_or_init(|| {
        let lines = include_str!("../../data/unstored.txt").lines();
        lines.map(|line| Arc::new(parse(&line.split('\t').collect::<Vec<_>>()))).collect()
    })
}

fn parse(columns: &[&'static str]) -> Kind {
    let &[group, version, kind, plural, singular, scope, verbs, empty] = columns else {
        panic!("a line of unstored.txt has 8 columns");
    };
    let mut all = [""; 20];
    all[..6].copy_from_slice(&[group, version, kind, plural, singular, scope]);
    all[8] = verbs;
    all[19] = empty;
    builtin::parse(&all)
}

/// The kinds with a path of their own, below which objects can only be created.
pub(crate) fn creatable(group: &str) -> impl Iterator<Item = &'static Arc<Kind>> {
    all().iter().filter(move |kind| kind.group == group && !kind.verbs.is_empty())
}

fn named(group: &str, name: &str) -> &'static Arc<Kind> {
    all().iter().find(|kind| kind.group == group && kind.kind == name).expect("a kind of the table")
}

/// The kind of the `scale` subresource.
pub(crate) fn scale() -> &'static Arc<Kind> {
    named("autoscaling", "Scale")
}

impl Part {
    /// The kind of a subresource's bodies, if that is not the kind of the object.
    pub(crate) fn body(self) -> Option<&'static Arc<Kind>> {
        match self {
            Part::Scale => Some(scale()),
            Part::Binding => Some(named("", "Binding")),
            Part::Eviction => Some(named("policy", "Eviction")),
            Part::Token => Some(named("authentication.k8s.io", "TokenRequest")),
            Part::Status | Part::Finalize | Part::Approval | Part::EphemeralContainers | Part::Resize => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_object_of_each_kind_is_the_zero_value_of_its_struct() {
        for kind in all() {
            let super::super::Schema::Typed(of) = kind.schema else { panic!("{} is typed", kind.kind) };
            assert_eq!(kind.empty(), of.zero(), "{}", kind.kind);
        }
    }
}
