//! What the documentation promises is there: examples that run, a test for every guarantee, and the tests that `tests/README.md` names.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Methods without an example of their own: the name says it all, or the example of the type shows it.
#[rustfmt::skip]
const OBVIOUS: &[(&str, &str)] = &[
    ("ApiListWatch", "compression fields labels namespace new of wire"),
    ("Body", "from_frames from_list from_stream in_form"),
    ("DecodeError", "target"),
    ("Event", "added deleted is_deleted key old origin updated"),
    ("Factory", "builder new resources"),
    ("FactoryBuilder", "build kind"),
    ("FieldSelector", "everything is_everything named"),
    ("HandlerBuilder", "on_event_async subscribe"),
    ("Index", "count get"),
    ("Informer", "lister resource start"),
    ("InformerBuilder", "build start"),
    ("Intake", "is_behind"),
    ("Item", "attempts forget"),
    ("Kind", "in_namespaces metadata_only resource"),
    ("Labels", "get is_empty iter len"),
    ("Lister", "count get keys list"),
    ("ListQuery", "new"),
    ("ListWatch", "list watch"),
    ("Metrics", "ended handler_ended report"),
    ("NamespaceLister", "count get keys list select sorted"),
    ("Obj", "key label labels name namespace owners uid version"),
    ("ObjRef", "key label labels name namespace owners uid version"),
    ("Object", "decode"),
    ("ObjectKey", "as_str cluster name namespace namespaced"),
    ("Owner", "api_version is is_controller kind name uid"),
    ("Pager", "new page_size stream"),
    ("Parameters", "get remove set"),
    ("QueueMetrics", "added depth finished retried taken unfinished"),
    ("RateLimit", "none"),
    ("Relists", "total"),
    ("Resources", "iter meant_by named"),
    ("RetryWatch", "after settings stream"),
    // The last one is of the hidden scope of deltas.
    ("Scope", "everything fields labels namespace namespaces covers"),
    ("Selector", "everything is_everything matches"),
    ("Served", "categories full_name group is_watchable kind placing plural resource short_names singular version"),
    ("ServerError", "code doing failure is_connection_refused is_expired is_forbidden is_internal is_not_found \
        is_too_large_version is_too_many_requests is_unauthorized new"),
    ("ServerStatus", "of_json"),
    // Setters that stand once, for `ReflectorSettings` and for `InformerBuilder`.
    ("ReflectorSettings", "all_namespaces keep metrics namespace queue when_refused wire"),
    ("Snapshot", "count get iter namespace select"),
    ("Status", "contact_age"),
    ("Uid", "new"),
    ("Version", "is_empty new"),
    ("WatchEvent", "is_deleted object"),
    ("WatchQuery", "new"),
    ("WorkQueue", "builder is_empty is_shut_down len name new running"),
    ("WorkQueueBuilder", "build metrics name"),
    // For those who build something else than an informer out of the parts.
    ("DeltaSink", "accept"),
    ("Intake", "accept"),
    ("Reflector", "new on_error run seed"),
];

#[test]
fn every_public_type_has_an_example() {
    let source = Source::read();
    assert!(source.public.len() > 70, "{:?}", source.public);
    let mut examples: BTreeMap<String, bool> = BTreeMap::new();
    for (name, has_example) in source.files.iter().flat_map(|text| types(text)) {
        *examples.entry(name).or_default() |= has_example;
    }
    let without: Vec<_> = source.public.iter().filter(|name| examples.get(*name) == Some(&false)).collect();
    assert!(without.is_empty(), "no example: {without:?}");
}

#[test]
fn every_public_method_has_an_example_or_is_obvious() {
    let source = Source::read();
    let methods: Vec<Method> = source.files.iter().flat_map(|text| methods(text)).collect();
    let mut public: Vec<_> = methods.iter().filter(|method| source.public.contains(&method.of)).collect();
    assert!(public.len() > 200, "{}", public.len());
    let obvious: BTreeSet<(&str, &str)> =
        OBVIOUS.iter().flat_map(|(of, names)| names.split_whitespace().map(move |name| (*of, name))).collect();
    let without = |method: &&Method| !method.has_example;
    let is_obvious = |method: &Method| obvious.contains(&(&*method.of, &*method.name));
    let missing: Vec<_> = public.iter().copied().filter(without).filter(|method| !is_obvious(method)).collect();
    assert!(missing.is_empty(), "no example: {missing:?}");
    public.retain(without);
    let without: BTreeSet<(&str, &str)> = public.iter().map(|method| (&*method.of, &*method.name)).collect();
    let stale: Vec<_> = obvious.difference(&without).collect();
    assert!(stale.is_empty(), "called obvious, but they have an example or are no more: {stale:?}");
}

#[test]
fn every_guarantee_has_a_test_of_its_name() {
    let text = fs::read_to_string(crate_folder().join("src/lib.rs")).unwrap();
    let tests = fs::read_to_string(crate_folder().join("tests/guarantees.rs")).unwrap();
    let promised: Vec<String> = text.lines().filter_map(guarantee).collect();
    assert!(promised.len() >= 17, "{promised:?}");
    let without: Vec<_> = promised.iter().filter(|name| !tests.contains(&format!("fn {name}()"))).collect();
    assert!(without.is_empty(), "no test: {without:?}");
}

/// The name of the test of a numbered promise, whose beginning stands between asterisks.
fn guarantee(line: &str) -> Option<String> {
    let (number, rest) = line.strip_prefix("//! ")?.split_once(". *")?;
    number.parse::<u32>().ok()?;
    let (promise, _) = rest.split_once('*')?;
    let words = promise.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    Some(words.map(str::to_lowercase).collect::<Vec<_>>().join("_"))
}

#[test]
fn every_test_that_the_tables_name_is_there() {
    let mut files = Vec::new();
    find(&crate_folder(), &mut files);
    let code: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let text = fs::read_to_string(crate_folder().join("tests/README.md")).unwrap();
    let words = text.split('`').skip(1).step_by(2);
    // Names of tests are sentences: four words at least.
    let is_sentence = |word: &&str| {
        word.matches('_').count() >= 3 && word.chars().all(|c| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    let named: BTreeSet<&str> = words.filter(is_sentence).collect();
    assert!(named.len() > 150, "{}", named.len());
    let is_there = |name: &str| code.iter().any(|text| text.contains(&format!("fn {name}(")));
    let missing: Vec<_> = named.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "not there: {missing:?}");
}

fn crate_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The source of the crate.
struct Source {
    files: Vec<String>,
    /// The names of types that others can name.
    public: BTreeSet<String>,
}

impl Source {
    fn read() -> Self {
        let folder = crate_folder().join("src");
        let mut files = Vec::new();
        find(&folder, &mut files);
        let mut public: BTreeSet<String> = exported(&fs::read_to_string(folder.join("lib.rs")).unwrap());
        let reflector = fs::read_to_string(folder.join("reflector.rs")).unwrap();
        public.extend(exported(&reflector).into_iter().chain(types(&reflector).into_iter().map(|(name, _)| name)));
        Self { files: files.iter().map(|file| fs::read_to_string(file).unwrap()).collect(), public }
    }
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The names in `pub use self::…;`.
fn exported(text: &str) -> BTreeSet<String> {
    let uses = text.split("\npub use self::").skip(1).filter_map(|rest| rest.split_once(';'));
    let names = uses.flat_map(|(names, _)| names.split(|c: char| !c.is_alphanumeric()));
    names.filter(|name| name.starts_with(char::is_uppercase)).map(str::to_owned).collect()
}

/// The public types of a file, and whether their documentation has an example.
fn types(text: &str) -> Vec<(String, bool)> {
    let (mut found, mut has_example) = (Vec::new(), false);
    for line in text.lines() {
        let item = ["pub struct ", "pub enum ", "pub trait "].iter().find_map(|item| line.strip_prefix(item));
        if let Some(rest) = item {
            let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            found.push((name.to_owned(), has_example));
        } else if line.starts_with("///") {
            has_example |= line.contains("```");
            continue;
        } else if !line.is_empty() && line != "}" {
            // Attributes, also on several lines, stand between the documentation and its type.
            continue;
        }
        has_example = false;
    }
    found
}

#[derive(Debug)]
struct Method {
    of: String,
    name: String,
    has_example: bool,
}

/// The public methods of a file, those of public traits included.
fn methods(text: &str) -> Vec<Method> {
    let (mut found, mut block, mut docs) = (Vec::new(), None, Docs::default());
    for line in text.lines() {
        let words = line.trim_start();
        if let Some(begun) = Block::begun_by(line) {
            (block, docs) = (Some(begun), Docs::default());
        } else if line.starts_with('}') {
            block = None;
        }
        if words.starts_with("///") {
            docs.has_example |= words.contains("```");
        } else if words.starts_with("#[doc(hidden)]") {
            docs.hidden = true;
        } else if let Some((of, name)) = block.as_ref().and_then(|block: &Block| block.method(words)) {
            if !docs.hidden {
                found.push(Method { of, name, has_example: docs.has_example });
            }
            docs = Docs::default();
        } else if words.is_empty() || words == "}" {
            docs = Docs::default();
        }
    }
    found
}

#[derive(Default)]
struct Docs {
    has_example: bool,
    hidden: bool,
}

/// What methods stand in.
#[derive(Debug, Clone)]
struct Block {
    of: String,
    /// What a public method begins with.
    begin: &'static str,
}

impl Block {
    fn begun_by(line: &str) -> Option<Self> {
        if line == "setters! {" {
            return Some(Self { of: "ReflectorSettings".to_owned(), begin: "" });
        }
        if let Some(rest) = line.strip_prefix("pub trait ") {
            return Some(Self { of: first_name(rest), begin: "" });
        }
        let rest = line.strip_prefix("impl")?;
        let of = match rest.strip_prefix('<') {
            Some(generic) => past_generics(generic)?,
            None => rest,
        };
        // The methods of a trait are documented with the trait.
        (!line.contains(" for ")).then(|| Self { of: first_name(of.trim_start()), begin: "pub " })
    }

    /// The method that a line declares, and what it is of.
    fn method(&self, line: &str) -> Option<(String, String)> {
        let rest = line.strip_prefix(self.begin)?;
        let rest = rest.strip_prefix("const ").unwrap_or(rest);
        let rest = rest.strip_prefix("async ").unwrap_or(rest);
        let name = rest.strip_prefix("fn ")?.split(['(', '<']).next()?;
        Some((self.of.clone(), name.to_owned()))
    }
}

/// What follows generic parameters whose bracket has been opened.
fn past_generics(text: &str) -> Option<&str> {
    let mut depth = 1;
    let end = text.char_indices().find(|(at, c)| {
        depth += match c {
            '<' => 1,
            '>' if !text[..*at].ends_with('-') => -1,
            _ => 0,
        };
        depth == 0
    });
    end.map(|(at, _)| &text[at + 1..])
}

fn first_name(text: &str) -> String {
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}
