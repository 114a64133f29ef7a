//! The built-in kinds, as recorded from kube-apiserver.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::schema::Structs;
use super::{
    Behaviour, Cache, Counts, DeleteReply, Generation, GroupResource, InitialStatus, Kind, Lifecycle, NameRule, Part,
    Propagation, PutMissing, ResourceScope, ScalePaths, Schema, Selectable, Subresource, Text, UpdateVersion,
};
use crate::http::request::Verb;

const JOB_DELETE_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                                  remove them or set propagationPolicy=Orphan to suppress this warning";

/// The built-in kinds in discovery order, parsed once per process.
#[derive(Debug)]
pub(crate) struct BuiltIns {
    kinds: Vec<Arc<Kind>>,
    by_path: HashMap<(&'static str, &'static str, &'static str), Arc<Kind>>,
}

impl BuiltIns {
    pub(crate) fn get() -> &'static BuiltIns {
        static BUILT_INS: OnceLock<BuiltIns> = OnceLock::new();
        BUILT_INS.get_or_init(|| {
            let lines = include_str!("../../data/kinds.txt").lines();
            let parsed = lines.map(|line| {
                let columns: Vec<&'static str> = line.split('\t').collect();
                ((columns[0], columns[1], columns[3]), Arc::new(parse(&columns)))
            });
            let by_path: Vec<_> = parsed.collect();
            BuiltIns {
                kinds: by_path.iter().map(|(_, kind)| Arc::clone(kind)).collect(),
                by_path: by_path.into_iter().collect(),
            }
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.iter()
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        self.by_path.get(&(group, version, plural)).cloned()
    }
}

/// Parses the columns of a line.
pub(super) fn parse(columns: &[&'static str]) -> Kind {
    let &[
        group,
        version,
        kind,
        plural,
        singular,
        scope,
        short_names,
        categories,
        verbs,
        subresources,
        storage_version_hash,
        selectable,
        unknown_field,
        generation,
        update,
        put,
        delete,
        finalizers,
        warning,
        bookmark,
    ] = columns
    else {
        panic!("a line of kinds.txt has 20 columns");
    };
    let structs = Structs::get();
    let schema = structs.of_kind(&format!("{group}/{version}/{kind}")).expect("every kind has its struct in types.txt");
    let subresources: Vec<_> = subresources.split(';').filter_map(subresource).collect();
    let has_scale = subresources.iter().any(|sub| sub.part == Part::Scale);
    let has_status = subresources.iter().any(|sub| sub.part == Part::Status);
    let behaviour = Behaviour {
        name_rule: match plural {
            "namespaces" | "services" | "statefulsets" => NameRule::DnsLabel,
            "certificatesigningrequests" | "clustertrustbundles" | "ipaddresses" | "apiservices" => {
                NameRule::PathSegment
            }
            _ if group == "rbac.authorization.k8s.io" => NameRule::PathSegment,
            _ => NameRule::DnsSubdomain,
        },
        generation: match (generation, plural) {
            ("1", "priorityclasses") => Generation::One,
            ("1", "deployments") => Generation::Counted(Counts::ContentAndAnnotations),
            ("1", "endpointslices") => Generation::Counted(Counts::ContentAndLabels),
            ("1", _) => Generation::Counted(Counts::Content),
            (_, "csidrivers") => Generation::CountedFromNothing,
            _ => Generation::AsSent,
        },
        update_version: if update == "r" { UpdateVersion::Required } else { UpdateVersion::Optional },
        put_missing: if put == "c" { PutMissing::Creates } else { PutMissing::NotFound },
        delete_reply: if delete == "o" { DeleteReply::Object } else { DeleteReply::Status },
        propagation: match plural {
            "jobs" | "replicationcontrollers" => Propagation::Orphan,
            _ => Propagation::Background,
        },
        initial_status: match plural {
            "namespaces" => InitialStatus::Phase("Active"),
            "pods" | "persistentvolumes" | "persistentvolumeclaims" => InitialStatus::Phase("Pending"),
            "nodes" => InitialStatus::Kept,
            _ if has_status => InitialStatus::Empty,
            _ => InitialStatus::Kept,
        },
        initial_finalizers: list(finalizers),
        deprecation: Some(warning).filter(|warning| !warning.is_empty()),
        delete_warning: (plural == "jobs").then_some(JOB_DELETE_WARNING),
        lifecycle: match plural {
            "namespaces" => Lifecycle::Namespace,
            "pods" => Lifecycle::Pod,
            "daemonsets" => Lifecycle::DaemonSet,
            "customresourcedefinitions" => Lifecycle::CustomResourceDefinition,
            _ => Lifecycle::Plain,
        },
    };
    let storage_group = if plural == "events" { "" } else { group };
    Kind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        list_kind: format!("{kind}List").into(),
        plural: plural.into(),
        singular: singular.into(),
        short_names: list(short_names),
        categories: list(categories),
        scope: if scope == "N" { ResourceScope::Namespaced } else { ResourceScope::Cluster },
        verbs: verb_list(verbs),
        subresources,
        storage_version_hash: storage_version_hash.into(),
        schema: Schema::Typed(schema),
        behaviour,
        cache: if plural == "events" { Cache::Uncached } else { Cache::Cached },
        storage: GroupResource { group: storage_group.into(), resource: plural.into() },
        structure: None,
        conversion: None,
        scale: has_scale.then(|| ScalePaths::new(".spec.replicas", ".status.replicas", ".spec.selector")),
        selectable: selectable.split(',').map(Selectable::built_in).collect(),
        unknown_field: unknown_field.into(),
        api_version: if group.is_empty() { version.into() } else { format!("{group}/{version}").into() },
        zero: bookmark,
        bookmark: OnceLock::new(),
        columns: OnceLock::new(),
    }
}

fn subresource(text: &'static str) -> Option<Subresource> {
    let (name, verbs) = text.split_once('=')?;
    Some(Subresource { part: Part::parse(name)?, verbs: verb_list(verbs) })
}

fn verb_list(words: &str) -> Vec<Verb> {
    const ALL: [Verb; 8] = [
        Verb::Create,
        Verb::Delete,
        Verb::DeleteCollection,
        Verb::Get,
        Verb::List,
        Verb::Patch,
        Verb::Update,
        Verb::Watch,
    ];
    words.split(',').filter_map(|word| ALL.into_iter().find(|verb| verb.name() == word)).collect()
}

fn list(words: &'static str) -> Vec<Text> {
    words.split(',').filter(|word| !word.is_empty()).map(Text::from).collect()
}
