//! Removal and lookup of fields by path.

use std::ops::{ControlFlow, Range};

use bytes::Bytes;

use super::cursor::{Broken, Cursor};
use crate::codec::protobuf;
use crate::codec::wire::Wire;
use crate::object::{FieldPath, Step};

/// Removes fields from objects without decoding them.
#[derive(Debug, Clone, Default)]
pub struct FieldCutter {
    root: Node,
}

/// A node of the tree of paths to remove.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// Whether the value at this node is removed.
    pub(in crate::codec) here: bool,
    fields: Vec<(Box<str>, Node)>,
    elements: Vec<(usize, Node)>,
    every: Option<Box<Node>>,
}

impl FieldCutter {
    /// A cutter that removes the values at these paths.
    pub fn new(paths: impl IntoIterator<Item = FieldPath>) -> Self {
        let mut root = Node::default();
        for path in paths {
            let mut node = &mut root;
            for step in path.steps() {
                node = node.below(step);
            }
            node.here = true;
        }
        Self { root }
    }

    /// Whether there is nothing to remove.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_leaf()
    }

    /// The object without the fields; unchanged if it has none of them.
    ///
    /// An object in protobuf may be returned as JSON, if the result can be expressed only in JSON.
    pub fn cut(&self, object: &Bytes) -> Result<Bytes, Broken> {
        if self.is_empty() || Wire::of(object) == Wire::Json {
            return self.cut_json(object);
        }
        match protobuf::cut(object, &self.root)? {
            Some(cut) => Ok(cut.into()),
            None => self.cut_json(&protobuf::to_json(object)?.into()),
        }
    }

    fn cut_json(&self, json: &Bytes) -> Result<Bytes, Broken> {
        let mut cuts = Vec::new();
        if !self.is_empty() {
            Cutting { cursor: Cursor::new(json), cuts: &mut cuts }.value(&[&self.root], true)?;
        }
        if cuts.is_empty() {
            return Ok(json.clone());
        }
        let removed: usize = cuts.iter().map(Range::len).sum();
        let mut kept = Vec::with_capacity(json.len().saturating_sub(removed));
        let mut from = 0;
        for cut in cuts {
            kept.extend_from_slice(json.get(from..cut.start).unwrap_or_default());
            from = cut.end;
        }
        kept.extend_from_slice(&json[from..]);
        Ok(kept.into())
    }
}

impl Node {
    fn below(&mut self, step: &Step) -> &mut Self {
        fn child<T: PartialEq>(children: &mut Vec<(T, Node)>, key: T) -> &mut Node {
            let at = children.iter().position(|(k, _)| *k == key).unwrap_or_else(|| {
                children.push((key, Node::default()));
                children.len() - 1
            });
            &mut children[at].1
        }
        match step {
            Step::Field(name) => child(&mut self.fields, name.clone()),
            Step::Element(at) => child(&mut self.elements, *at),
            Step::Every => self.every.get_or_insert_default(),
        }
    }

    /// The node of a field.
    pub(in crate::codec) fn field(&self, name: &str) -> Option<&Self> {
        self.fields.iter().find(|(field, _)| **field == *name).map(|(_, node)| node)
    }

    /// The nodes of an array element.
    pub(in crate::codec) fn element(&self, nth: usize) -> impl Iterator<Item = &Self> {
        let here = self.elements.iter().filter(move |(at, _)| *at == nth).map(|(_, node)| node);
        here.chain(self.every.as_deref())
    }

    fn is_leaf(&self) -> bool {
        self.fields.is_empty() && self.elements.is_empty() && self.every.is_none()
    }
}

struct Cutting<'a, 'b> {
    cursor: Cursor<'a>,
    /// The byte ranges to remove, in order.
    cuts: &'b mut Vec<Range<usize>>,
}

impl Cutting<'_, '_> {
    /// Walks a value, and records what `nodes` remove from it. `last`: nothing after the value
    /// needs to be read.
    fn value(&mut self, nodes: &[&Node], last: bool) -> Result<(), Broken> {
        match self.cursor.peek()? {
            b'{' if nodes.iter().any(|node| !node.fields.is_empty()) => self.object(nodes, last),
            b'[' if nodes.iter().any(|node| !node.elements.is_empty() || node.every.is_some()) => self.list(nodes),
            _ => self.cursor.skip(),
        }
    }

    fn object(&mut self, nodes: &[&Node], last: bool) -> Result<(), Broken> {
        // Servers send unique names: once every wanted field has been found, the rest is not read.
        let mut wanted = MissingFields::new(nodes);
        let mut members = self.cursor.object()?;
        let mut comma = Comma::new(self.cursor.at());
        loop {
            if last && wanted.all_found() && comma.settled() {
                return Ok(());
            }
            self.cursor.peek()?;
            let begin = self.member_begin()?;
            let Some(name) = self.cursor.field(&mut members)? else {
                return Ok(());
            };
            let below: Vec<&Node> = nodes
                .iter()
                .flat_map(|node| &node.fields)
                .enumerate()
                .filter(|(_, (field, _))| name.is(field))
                .map(|(ordinal, (_, node))| wanted.found(ordinal, node))
                .collect();
            self.member(&below, begin, &mut comma, last && wanted.all_found())?;
        }
    }

    fn list(&mut self, nodes: &[&Node]) -> Result<(), Broken> {
        let mut members = self.cursor.list()?;
        let mut comma = Comma::new(self.cursor.at());
        let mut index = 0;
        loop {
            self.cursor.peek()?;
            let begin = self.member_begin()?;
            if !self.cursor.element(&mut members)? {
                return Ok(());
            }
            let below: Vec<&Node> = nodes.iter().flat_map(|node| node.element(index)).collect();
            self.member(&below, begin, &mut comma, false)?;
            index += 1;
        }
    }

    /// Where the next member begins, after its comma.
    fn member_begin(&mut self) -> Result<usize, Broken> {
        let mut ahead = self.cursor.clone();
        if ahead.peek()? == b',' {
            ahead.expect(b',')?;
            ahead.peek()?;
        }
        Ok(ahead.at())
    }

    /// Walks the value of a member, and records the member if it is removed.
    fn member(&mut self, below: &[&Node], begin: usize, comma: &mut Comma, last: bool) -> Result<(), Broken> {
        if let Some(open) = comma.open.take() {
            // The previous member is removed and no member before it is kept: its comma is removed
            // too.
            self.cuts.push(open..begin);
        }
        if below.iter().any(|node| node.here) {
            self.cursor.skip()?;
            let end = self.cursor.at();
            if comma.kept {
                self.cuts.push(comma.end..end);
            } else {
                self.cuts.push(begin..end);
                comma.open = Some(end);
            }
        } else {
            if below.is_empty() {
                self.cursor.skip()?;
            } else {
                self.value(below, last)?;
            }
            comma.kept = true;
        }
        comma.end = self.cursor.at();
        Ok(())
    }
}

/// Bit set of the wanted fields that have not been found; none if there are more than 64, in which
/// case the object is read to its end.
struct MissingFields(Option<u64>);

impl MissingFields {
    fn new(nodes: &[&Node]) -> Self {
        match nodes.iter().map(|node| node.fields.len()).sum::<usize>() {
            count @ 0..64 => Self(Some((1 << count) - 1)),
            64 => Self(Some(u64::MAX)),
            _ => Self(None),
        }
    }

    fn found<'a>(&mut self, ordinal: usize, node: &'a Node) -> &'a Node {
        if let Some(missing) = &mut self.0 {
            *missing &= !(1 << ordinal);
        }
        node
    }

    fn all_found(&self) -> bool {
        self.0 == Some(0)
    }
}

/// Which comma is removed together with a member.
struct Comma {
    /// Whether a previous member is kept; then the comma before a removed member is removed.
    kept: bool,
    /// End of the previous member.
    end: usize,
    /// End of a removed member whose following comma must be removed.
    open: Option<usize>,
}

impl Comma {
    fn new(at: usize) -> Self {
        Self { kept: false, end: at, open: None }
    }

    fn settled(&self) -> bool {
        self.open.is_none()
    }
}

/// The first scalar at a path, as text.
pub(crate) fn find(object: &[u8], path: &FieldPath) -> Option<String> {
    if Wire::of(object) == Wire::Protobuf {
        return protobuf::values_at(object, path, 1).pop();
    }
    let mut found = None;
    each_at(object, path, |value| {
        found = Some(value);
        ControlFlow::Break(())
    });
    found
}

/// Every scalar at a path, as text, up to the first malformed byte.
pub(crate) fn find_all(object: &[u8], path: &FieldPath) -> Vec<String> {
    if Wire::of(object) == Wire::Protobuf {
        return protobuf::values_at(object, path, usize::MAX);
    }
    let mut values = Vec::new();
    each_at(object, path, |value| {
        values.push(value);
        ControlFlow::Continue(())
    });
    values
}

/// Calls `each` with every scalar at a path, as text, until it breaks.
fn each_at(json: &[u8], path: &FieldPath, mut each: impl FnMut(String) -> ControlFlow<()>) {
    // A break and a malformed value both end the walk.
    let _ = each_below(&mut Cursor::new(json), path.steps(), true, &mut each);
}

/// Breaks if `each` breaks, or if no match can follow (`last`: nothing after the value needs to be
/// read). Otherwise leaves the cursor after the value.
fn each_below(
    cursor: &mut Cursor<'_>,
    steps: &[Step],
    last: bool,
    each: &mut dyn FnMut(String) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Broken> {
    let byte = cursor.peek()?;
    match (steps.split_first(), byte) {
        (None, b'"') => Ok(each(cursor.text()?.read()?.into_owned())),
        (None, b'{' | b'[') => cursor.skip().map(|()| ControlFlow::Continue(())),
        (None, _) => {
            let value = std::str::from_utf8(cursor.value()?).map_err(|_| Broken::Text)?;
            Ok(if value == "null" { ControlFlow::Continue(()) } else { each(value.to_owned()) })
        }
        (Some((Step::Field(wanted), rest)), b'{') => {
            let mut members = cursor.object()?;
            while let Some(name) = cursor.field(&mut members)? {
                if name.is(wanted) {
                    // Servers send unique names.
                    if each_below(cursor, rest, last, each)?.is_break() || last {
                        return Ok(ControlFlow::Break(()));
                    }
                } else {
                    cursor.skip()?;
                }
            }
            Ok(ControlFlow::Continue(()))
        }
        (Some((step @ (Step::Element(_) | Step::Every), rest)), b'[') => {
            let mut elements = cursor.list()?;
            let mut index = 0;
            while cursor.element(&mut elements)? {
                if matches!(step, Step::Every) || *step == Step::Element(index) {
                    let last = last && matches!(step, Step::Element(_));
                    if each_below(cursor, rest, last, each)?.is_break() || last {
                        return Ok(ControlFlow::Break(()));
                    }
                } else {
                    cursor.skip()?;
                }
                index += 1;
            }
            Ok(ControlFlow::Continue(()))
        }
        (Some(_), _) => cursor.skip().map(|()| ControlFlow::Continue(())),
    }
}

/// The steps to the innermost value that contains this byte. A name belongs to its value.
pub(crate) fn steps_to(json: &[u8], at: usize) -> Vec<Step> {
    let mut cursor = Cursor::new(json);
    let mut steps = Vec::new();
    while let Ok(Some(step)) = step_to(&mut cursor, at) {
        steps.push(step);
        if cursor.peek().is_err() || at < cursor.at() {
            // The byte belongs to the name.
            break;
        }
    }
    steps
}

/// Descends one step towards a byte; leaves the cursor before the value that contains it.
fn step_to(cursor: &mut Cursor<'_>, at: usize) -> Result<Option<Step>, Broken> {
    let contains = |cursor: &mut Cursor<'_>| {
        let mut ahead = cursor.clone();
        ahead.skip()?;
        let contains = at < ahead.at();
        if !contains {
            *cursor = ahead;
        }
        Ok::<_, Broken>(contains)
    };
    match cursor.peek()? {
        b'{' => {
            let mut members = cursor.object()?;
            while let Some(name) = cursor.field(&mut members)? {
                if contains(cursor)? {
                    return Ok(Some(Step::Field(name.read()?.into())));
                }
            }
            Ok(None)
        }
        b'[' => {
            let mut elements = cursor.list()?;
            let mut index = 0;
            while cursor.element(&mut elements)? {
                if contains(cursor)? {
                    return Ok(Some(Step::Element(index)));
                }
                index += 1;
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}
