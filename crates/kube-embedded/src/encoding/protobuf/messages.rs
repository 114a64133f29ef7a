//! Message descriptors of the built-in kinds.

use std::collections::HashMap;
use std::sync::OnceLock;

/// All message descriptors, parsed once per process.
#[derive(Debug)]
pub(super) struct Messages {
    all: Vec<Message>,
    by_name: HashMap<&'static str, usize>,
}

/// A message descriptor.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: &'static str,
    fields: Vec<Field>,
}

/// A field of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) repeats: Repeats,
    pub(super) of: Of,
}

/// The cardinality of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeats {
    Once,
    List,
    /// String keys.
    Map,
}

/// The type of a field or of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Whole,
    Bool,
    Float,
    Text,
    Bytes,
    Message(usize),
}

impl Messages {
    pub(super) fn get() -> &'static Messages {
        static MESSAGES: OnceLock<Messages> = OnceLock::new();
        MESSAGES.get_or_init(|| {
            let all: Vec<Message> = include_str!("../../../data/messages.txt").lines().map(Message::parse).collect();
            let by_name = all.iter().enumerate().map(|(at, message)| (message.name, at)).collect();
            Messages { all, by_name }
        })
    }

    pub(super) fn at(&self, number: usize) -> &Message {
        &self.all[number]
    }

    /// The index of the message of a kind, given as `group/version/Kind`.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        let (group, kind) = name.split_once('/')?;
        let dotted = kind.replace('/', ".");
        let within = |package: &str| self.by_name.get(format!("{package}.{dotted}").as_str()).copied();
        let meta = || within("k8s.io.apimachinery.pkg.apis.meta");
        match group {
            "" => within("k8s.io.api.core").or_else(meta),
            "meta.k8s.io" => meta(),
            "apiextensions.k8s.io" => within("k8s.io.apiextensions_apiserver.pkg.apis.apiextensions"),
            "apiregistration.k8s.io" => within("k8s.io.kube_aggregator.pkg.apis.apiregistration"),
            group => within(&format!("k8s.io.api.{}", group.split('.').next().unwrap_or_default())),
        }
    }
}

impl Message {
    pub(super) fn fields(&self) -> &[Field] {
        &self.fields
    }

    fn parse(line: &'static str) -> Message {
        let mut parts = line.split('\t');
        let name = parts.next().expect("split gives at least one part");
        Message { name, fields: parts.map(Field::parse).collect() }
    }
}

impl Field {
    fn parse(text: &'static str) -> Field {
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().expect("a field has three parts");
        let (number, name, kind) = (part(), part(), part());
        let (repeats, kind) = match (kind.strip_prefix('*'), kind.strip_prefix('{')) {
            (Some(kind), _) => (Repeats::List, kind),
            (_, Some(kind)) => (Repeats::Map, kind),
            _ => (Repeats::Once, kind),
        };
        let of = match kind {
            "i" => Of::Whole,
            "b" => Of::Bool,
            "f" => Of::Float,
            "s" => Of::Text,
            "y" => Of::Bytes,
            number => Of::Message(number.parse().expect("a message is named by its number")),
        };
        Field { number: number.parse().expect("a field has a number"), name, repeats, of }
    }
}
