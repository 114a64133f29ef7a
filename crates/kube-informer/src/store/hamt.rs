//! A persistent hash array mapped trie (HAMT).

use std::mem;
use std::slice;
use std::sync::Arc;

/// A leaf with more items than this is split, unless all of them have the same hash.
const MAX_LEAF: usize = 16;
/// A branch consumes at most this many bits of the hash, and so has at most 2^5 = 32 children.
const BITS: u32 = 5;

/// A persistent map from hashes to values. A clone is a snapshot: O(1), and later writes do not
/// affect it.
///
/// Several values may have the same hash; every operation takes a predicate that distinguishes
/// them. Writes are copy-on-write: nodes on the path that a snapshot still holds are copied (a few
/// dozen reference counts), the others are modified in place.
#[derive(Debug, Clone)]
pub(crate) struct Hamt<T> {
    root: Node<T>,
    len: usize,
}

#[derive(Debug)]
enum Node<T> {
    Leaf(Arc<[Item<T>]>),
    /// Children by the next bits of the hash, most significant first. Their number is a power of
    /// two, at least two.
    Branch(Arc<[Node<T>]>),
}

#[derive(Debug, Clone)]
struct Item<T> {
    hash: u32,
    value: T,
}

impl<T> Hamt<T> {
    pub(crate) fn new() -> Self {
        Self { root: Node::default(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value with this hash that satisfies `same`.
    pub(crate) fn get(&self, hash: u32, same: impl Fn(&T) -> bool) -> Option<&T> {
        let mut walk = self.walk(hash);
        while walk.step() {}
        walk.end(same)
    }

    /// A lookup of this hash that is advanced step by step.
    pub(crate) fn walk(&self, hash: u32) -> Walk<'_, T> {
        Walk { node: &self.root, hash, rest: hash }
    }

    pub(crate) fn iter(&self) -> Iter<'_, T> {
        let mut iter = Iter { stack: Vec::new(), items: [].iter() };
        iter.enter(&self.root);
        iter
    }
}

impl<T: Clone> Hamt<T> {
    /// The value with this hash that satisfies `same`, unshared from all snapshots. A miss copies
    /// only the shared branches on the path, which a following insert would copy as well, and no
    /// leaf.
    pub(crate) fn get_mut(&mut self, hash: u32, same: impl Fn(&T) -> bool) -> Option<&mut T> {
        let (mut node, mut rest) = (&mut self.root, hash);
        loop {
            match node {
                Node::Branch(children) => {
                    let at = child_index(children.len(), &mut rest);
                    node = &mut Arc::make_mut(children)[at];
                }
                Node::Leaf(items) => {
                    let at = position(items, hash, same)?;
                    return Some(&mut Arc::make_mut(items)[at].value);
                }
            }
        }
    }

    /// Inserts a value, and returns the value it replaces: the one with this hash that satisfies
    /// `same`.
    pub(crate) fn insert(&mut self, hash: u32, value: T, same: impl Fn(&T) -> bool) -> Option<T> {
        match self.get_mut(hash, same) {
            Some(old) => Some(mem::replace(old, value)),
            None => {
                if let Some(grown) = insert(&mut self.root, Item { hash, value }, hash, 0) {
                    self.root = Node::Branch(split(&grown, 0).into());
                }
                self.len += 1;
                None
            }
        }
    }

    /// Removes and returns the value with this hash that satisfies `same`.
    pub(crate) fn remove(&mut self, hash: u32, same: impl Fn(&T) -> bool) -> Option<T> {
        self.get(hash, &same)?;
        let old = remove(&mut self.root, hash, hash, &same);
        self.len -= usize::from(old.is_some());
        old
    }
}

// Not derived, because the derive would require `T: Clone`.
impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(items) => Self::Leaf(Arc::clone(items)),
            Self::Branch(children) => Self::Branch(Arc::clone(children)),
        }
    }
}

/// A lookup that descends one level per step.
#[derive(Debug)]
pub(crate) struct Walk<'a, T> {
    node: &'a Node<T>,
    hash: u32,
    /// The unused bits of the hash, most significant first.
    rest: u32,
}

impl<'a, T> Walk<'a, T> {
    /// Descends one level. Returns false if the lookup is already at a leaf.
    pub(crate) fn step(&mut self) -> bool {
        match self.node {
            Node::Branch(children) => {
                self.node = &children[child_index(children.len(), &mut self.rest)];
                true
            }
            Node::Leaf(_) => false,
        }
    }

    /// The value that satisfies `same`, once [`step`](Self::step) has returned false.
    pub(crate) fn end(&self, same: impl Fn(&T) -> bool) -> Option<&'a T> {
        match self.node {
            Node::Leaf(items) => position(items, self.hash, same).map(|at| &items[at].value),
            Node::Branch(_) => None,
        }
    }
}

/// Tries that are freed node by node.
#[derive(Debug)]
pub(crate) struct PendingFree<T>(Vec<Node<T>>);

impl<T> Default for PendingFree<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> PendingFree<T> {
    pub(crate) fn add(&mut self, trie: Hamt<T>) {
        self.0.push(trie.root);
    }

    /// Frees one node, unless it is shared. The values of a freed leaf are first passed to
    /// `before_drop`. Returns false if no node is left.
    pub(crate) fn free_one(&mut self, before_drop: impl FnMut(&mut T)) -> bool {
        let Some(mut node) = self.0.pop() else { return false };
        match &mut node {
            Node::Leaf(items) => {
                Arc::get_mut(items).into_iter().flatten().map(|item| &mut item.value).for_each(before_drop);
            }
            Node::Branch(children) => {
                let children = Arc::get_mut(children).into_iter().flatten();
                self.0.extend(children.filter(|child| child.is_unique()).map(mem::take));
            }
        }
        true
    }
}

impl<T> Node<T> {
    /// Whether this is the only reference to the node.
    fn is_unique(&self) -> bool {
        1 == match self {
            Self::Leaf(items) => Arc::strong_count(items),
            Self::Branch(children) => Arc::strong_count(children),
        }
    }
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self::Leaf(Arc::default())
    }
}

/// Iterates over the values without changing reference counts.
#[derive(Debug)]
pub(crate) struct Iter<'a, T> {
    stack: Vec<slice::Iter<'a, Node<T>>>,
    items: slice::Iter<'a, Item<T>>,
}

impl<'a, T> Iter<'a, T> {
    fn enter(&mut self, node: &'a Node<T>) {
        match node {
            Node::Leaf(items) => self.items = items.iter(),
            Node::Branch(children) => self.stack.push(children.iter()),
        }
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(item) = self.items.next() {
                return Some(&item.value);
            }
            match self.stack.last_mut()?.next() {
                Some(node) => self.enter(node),
                None => drop(self.stack.pop()),
            }
        }
    }

    /// Internal iteration, also used by `for_each` and `sum`: faster, because the stack is not
    /// updated for each value.
    fn fold<B, F: FnMut(B, &'a T) -> B>(self, init: B, mut f: F) -> B {
        let mut folded = self.items.fold(init, |folded, item| f(folded, &item.value));
        for nodes in self.stack.into_iter().rev() {
            folded = nodes.fold(folded, |folded, node| fold(node, folded, &mut f));
        }
        folded
    }
}

fn fold<'a, T, B>(node: &'a Node<T>, init: B, f: &mut impl FnMut(B, &'a T) -> B) -> B {
    match node {
        Node::Leaf(items) => items.iter().fold(init, |folded, item| f(folded, &item.value)),
        Node::Branch(children) => children.iter().fold(init, |folded, node| fold(node, folded, f)),
    }
}

impl<'a, T> IntoIterator for &'a Hamt<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// Index of the child to descend to. Removes the bits it uses from `rest`.
fn child_index(children: usize, rest: &mut u32) -> usize {
    let bits = children.trailing_zeros();
    let at = *rest >> (u32::BITS - bits);
    *rest <<= bits;
    at as usize
}

fn position<T>(items: &[Item<T>], hash: u32, same: impl Fn(&T) -> bool) -> Option<usize> {
    items.iter().position(|item| item.hash == hash && same(&item.value))
}

/// Returns the items of the node, including the new one, if they must be split: the parent may have
/// room for the halves.
fn insert<T: Clone>(node: &mut Node<T>, item: Item<T>, mut rest: u32, depth: u32) -> Option<Vec<Item<T>>> {
    match node {
        Node::Leaf(items) => {
            let splits = items.len() >= MAX_LEAF && items.iter().any(|other| other.hash != item.hash);
            let grown = items.iter().cloned().chain([item]);
            if splits {
                return Some(grown.collect());
            }
            *items = grown.collect();
        }
        Node::Branch(children) => {
            let at = child_index(children.len(), &mut rest);
            let depth = depth + children.len().trailing_zeros();
            let grown = insert(&mut Arc::make_mut(children)[at], item, rest, depth)?;
            if children.len() < 1 << BITS && depth < u32::BITS {
                let halves =
                    |(n, child): (usize, &Node<T>)| if n == at { split(&grown, depth) } else { child.halves(depth) };
                *children = children.iter().enumerate().flat_map(halves).collect::<Vec<_>>().into();
            } else {
                Arc::make_mut(children)[at] = Node::Branch(split(&grown, depth).into());
            }
        }
    }
    None
}

/// Splits items into two nodes by the bit at this depth. A half that is too large for a leaf
/// becomes a branch.
fn split<T: Clone>(items: &[Item<T>], depth: u32) -> [Node<T>; 2] {
    let half = |bit: u32| {
        let half: Arc<[_]> =
            items.iter().filter(|item| item.hash << depth >> (u32::BITS - 1) == bit).cloned().collect();
        match half.len() > MAX_LEAF && depth + 1 < u32::BITS {
            true => Node::Branch(split(&half, depth + 1).into()),
            false => Node::Leaf(half),
        }
    };
    [half(0), half(1)]
}

impl<T: Clone> Node<T> {
    fn halves(&self, depth: u32) -> [Self; 2] {
        match self {
            Self::Leaf(items) => split(items, depth),
            Self::Branch(children) => {
                let (low, high) = children.split_at(children.len() / 2);
                [low, high].map(|half| if let [only] = half { only.clone() } else { Self::Branch(half.into()) })
            }
        }
    }

    fn leaf_len(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Branch(_) => MAX_LEAF,
        }
    }
}

fn remove<T: Clone>(node: &mut Node<T>, hash: u32, mut rest: u32, same: &impl Fn(&T) -> bool) -> Option<T> {
    match node {
        Node::Leaf(items) => {
            let at = position(items, hash, same)?;
            let old = items[at].value.clone();
            *items = items[..at].iter().chain(&items[at + 1..]).cloned().collect();
            Some(old)
        }
        Node::Branch(children) => {
            let at = child_index(children.len(), &mut rest);
            let old = remove(&mut Arc::make_mut(children)[at], hash, rest, same);
            // Merge the children into one leaf once they fill at most half of it.
            if children[at].leaf_len() < MAX_LEAF / 4
                && children.iter().map(Node::leaf_len).sum::<usize>() <= MAX_LEAF / 2
            {
                let items = children.iter().filter_map(|child| match child {
                    Node::Leaf(items) => Some(items.iter().cloned()),
                    Node::Branch(_) => None,
                });
                *node = Node::Leaf(items.flatten().collect());
            }
            old
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Hashes that collide in every way: in their first bits, in all bits, not at all.
    fn hash(number: u32) -> u32 {
        match number % 4 {
            0 => 0,
            1 => number / 4 % 3,
            2 => number << 27,
            _ => number.wrapping_mul(0x9e37_79b1),
        }
    }

    fn contents(trie: &Hamt<(u32, u32)>) -> BTreeMap<u32, u32> {
        let all: BTreeMap<_, _> = trie.iter().copied().collect();
        assert_eq!(all.len(), trie.len());
        let mut rest = trie.iter();
        let first = rest.next().map_or(0, |(key, _)| *key);
        let sum: u64 = all.keys().copied().map(u64::from).sum();
        assert_eq!(rest.fold(u64::from(first), |sum, (key, _)| sum + u64::from(*key)), sum);
        all
    }

    proptest! {
        #[test]
        fn a_trie_is_a_map_and_its_clones_are_snapshots(steps in prop::collection::vec((0..400_u32, 0..5_u32), 0..900)) {
            let (mut trie, mut map) = (Hamt::new(), BTreeMap::new());
            let mut snapshots = Vec::new();
            for (at, (key, value)) in steps.into_iter().enumerate() {
                let same = |entry: &(u32, u32)| entry.0 == key;
                if value == 0 {
                    prop_assert_eq!(trie.remove(hash(key), same).map(|old| old.1), map.remove(&key));
                } else {
                    prop_assert_eq!(trie.insert(hash(key), (key, value), same).map(|old| old.1), map.insert(key, value));
                }
                prop_assert_eq!(trie.get(hash(key), same).map(|entry| entry.1), map.get(&key).copied());
                if at % 200 == 0 {
                    snapshots.push((trie.clone(), map.clone()));
                }
            }
            prop_assert_eq!(contents(&trie), map);
            for (trie, map) in snapshots {
                prop_assert_eq!(contents(&trie), map);
            }
        }
    }

    #[test]
    fn a_trie_that_has_lost_everything_is_one_leaf_again() {
        let mut trie = Hamt::new();
        for n in 0..5_000 {
            trie.insert(hash(n), n, |other| *other == n);
        }
        for n in 0..5_000 {
            assert_eq!(trie.remove(hash(n), |other| *other == n), Some(n));
        }
        assert!(trie.is_empty());
        assert!(matches!(trie.root, Node::Leaf(_)));
    }
}
