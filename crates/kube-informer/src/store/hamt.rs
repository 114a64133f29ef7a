//! The structure the store stands on: a trie of shared nodes over hashes.

use std::mem;
use std::slice;
use std::sync::Arc;

/// A leaf that grows past this is cut up, unless all its items have one hash.
const LEAF: usize = 16;
/// A fan has at most 2 to the power of this many children.
const BITS: u32 = 5;

/// A map from hashes to values of which a clone is a snapshot: O(1) to take, never touched by later writes.
///
/// Any number of values may have one hash; every operation takes a test that tells them apart. A write copies the nodes
/// on its way that a snapshot still holds (a few dozen reference counts), and changes the others in place.
#[derive(Debug, Clone)]
pub(crate) struct Hamt<T> {
    root: Node<T>,
    len: usize,
}

#[derive(Debug)]
enum Node<T> {
    Leaf(Arc<[Item<T>]>),
    /// Children by the next bits of the hash, from the top. As many as a power of two, at least two.
    Fan(Arc<[Node<T>]>),
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

    /// The value of this hash that passes the test.
    pub(crate) fn get(&self, hash: u32, same: impl Fn(&T) -> bool) -> Option<&T> {
        let mut walk = self.walk(hash);
        while walk.step() {}
        walk.end(same)
    }

    /// The way to the values of this hash.
    pub(crate) fn walk(&self, hash: u32) -> Walk<'_, T> {
        Walk { node: &self.root, hash, rest: hash }
    }

    pub(crate) fn iter(&self) -> Iter<'_, T> {
        let mut iter = Iter { above: Vec::new(), items: [].iter() };
        iter.enter(&self.root);
        iter
    }
}

impl<T: Clone> Hamt<T> {
    /// The value of this hash that passes the test, out of reach of all snapshots. A miss copies the fans on its way, and no leaf: what
    /// putting the value in copies as well.
    pub(crate) fn get_mut(&mut self, hash: u32, same: impl Fn(&T) -> bool) -> Option<&mut T> {
        let (mut node, mut rest) = (&mut self.root, hash);
        loop {
            match node {
                Node::Fan(children) => {
                    let at = turn(children.len(), &mut rest);
                    node = &mut Arc::make_mut(children)[at];
                }
                Node::Leaf(items) => {
                    let at = place(items, hash, same)?;
                    return Some(&mut Arc::make_mut(items)[at].value);
                }
            }
        }
    }

    /// Puts a value in, and hands back the one it replaces: the one of this hash that passes the test.
    pub(crate) fn insert(&mut self, hash: u32, value: T, same: impl Fn(&T) -> bool) -> Option<T> {
        match self.get_mut(hash, same) {
            Some(old) => Some(mem::replace(old, value)),
            None => {
                if let Some(grown) = insert(&mut self.root, Item { hash, value }, hash, 0) {
                    self.root = Node::Fan(cut(&grown, 0).into());
                }
                self.len += 1;
                None
            }
        }
    }

    /// Takes out the value of this hash that passes the test.
    pub(crate) fn remove(&mut self, hash: u32, same: impl Fn(&T) -> bool) -> Option<T> {
        self.get(hash, &same)?;
        let old = remove(&mut self.root, hash, hash, &same);
        self.len -= usize::from(old.is_some());
        old
    }
}

// By hand, because a derive would ask for `T: Clone`.
impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(items) => Self::Leaf(Arc::clone(items)),
            Self::Fan(children) => Self::Fan(Arc::clone(children)),
        }
    }
}

/// A look at one value, a step at a time.
#[derive(Debug)]
pub(crate) struct Walk<'a, T> {
    node: &'a Node<T>,
    hash: u32,
    /// The bits of the hash that are left.
    rest: u32,
}

impl<'a, T> Walk<'a, T> {
    /// Whether there was a step to take.
    pub(crate) fn step(&mut self) -> bool {
        match self.node {
            Node::Fan(children) => {
                self.node = &children[turn(children.len(), &mut self.rest)];
                true
            }
            Node::Leaf(_) => false,
        }
    }

    /// The value of this hash that passes the test, once there are no more steps.
    pub(crate) fn end(&self, same: impl Fn(&T) -> bool) -> Option<&'a T> {
        match self.node {
            Node::Leaf(items) => place(items, self.hash, same).map(|at| &items[at].value),
            Node::Fan(_) => None,
        }
    }
}

/// Tries that are freed a node at a time.
#[derive(Debug)]
pub(crate) struct Remains<T>(Vec<Node<T>>);

impl<T> Default for Remains<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Remains<T> {
    pub(crate) fn add(&mut self, trie: Hamt<T>) {
        self.0.push(trie.root);
    }

    /// Frees a node, unless others hold it, and with a leaf its values, after a last look at each. Whether there was one.
    pub(crate) fn free_one(&mut self, last_look: impl FnMut(&mut T)) -> bool {
        let Some(mut node) = self.0.pop() else { return false };
        match &mut node {
            Node::Leaf(items) => {
                Arc::get_mut(items).into_iter().flatten().map(|item| &mut item.value).for_each(last_look);
            }
            Node::Fan(children) => {
                let children = Arc::get_mut(children).into_iter().flatten();
                self.0.extend(children.filter(|child| child.is_last()).map(mem::take));
            }
        }
        true
    }
}

impl<T> Node<T> {
    /// Whether nobody else holds this node.
    fn is_last(&self) -> bool {
        1 == match self {
            Self::Leaf(items) => Arc::strong_count(items),
            Self::Fan(children) => Arc::strong_count(children),
        }
    }
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self::Leaf(Arc::default())
    }
}

/// Walks values without touching their reference counts.
#[derive(Debug)]
pub(crate) struct Iter<'a, T> {
    above: Vec<slice::Iter<'a, Node<T>>>,
    items: slice::Iter<'a, Item<T>>,
}

impl<'a, T> Iter<'a, T> {
    fn enter(&mut self, node: &'a Node<T>) {
        match node {
            Node::Leaf(items) => self.items = items.iter(),
            Node::Fan(children) => self.above.push(children.iter()),
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
            match self.above.last_mut()?.next() {
                Some(node) => self.enter(node),
                None => drop(self.above.pop()),
            }
        }
    }

    /// What `for_each`, `sum` and the like go by: no stack to look after between two values.
    fn fold<B, F: FnMut(B, &'a T) -> B>(self, init: B, mut f: F) -> B {
        let mut folded = self.items.fold(init, |folded, item| f(folded, &item.value));
        for nodes in self.above.into_iter().rev() {
            folded = nodes.fold(folded, |folded, node| fold(node, folded, &mut f));
        }
        folded
    }
}

fn fold<'a, T, B>(node: &'a Node<T>, init: B, f: &mut impl FnMut(B, &'a T) -> B) -> B {
    match node {
        Node::Leaf(items) => items.iter().fold(init, |folded, item| f(folded, &item.value)),
        Node::Fan(children) => children.iter().fold(init, |folded, node| fold(node, folded, f)),
    }
}

impl<'a, T> IntoIterator for &'a Hamt<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// Which of so many children to take, and the bits of the hash that are left after that.
fn turn(children: usize, rest: &mut u32) -> usize {
    let bits = children.trailing_zeros();
    let at = *rest >> (u32::BITS - bits);
    *rest <<= bits;
    at as usize
}

fn place<T>(items: &[Item<T>], hash: u32, same: impl Fn(&T) -> bool) -> Option<usize> {
    items.iter().position(|item| item.hash == hash && same(&item.value))
}

/// Returns the items of the node instead of keeping them if they are to be cut up: the parent may have room for that.
fn insert<T: Clone>(node: &mut Node<T>, item: Item<T>, mut rest: u32, depth: u32) -> Option<Vec<Item<T>>> {
    match node {
        Node::Leaf(items) => {
            let splits = items.len() >= LEAF && items.iter().any(|other| other.hash != item.hash);
            let grown = items.iter().cloned().chain([item]);
            if splits {
                return Some(grown.collect());
            }
            *items = grown.collect();
        }
        Node::Fan(children) => {
            let at = turn(children.len(), &mut rest);
            let depth = depth + children.len().trailing_zeros();
            let grown = insert(&mut Arc::make_mut(children)[at], item, rest, depth)?;
            if children.len() < 1 << BITS && depth < u32::BITS {
                let halves =
                    |(n, child): (usize, &Node<T>)| if n == at { cut(&grown, depth) } else { child.halves(depth) };
                *children = children.iter().enumerate().flat_map(halves).collect::<Vec<_>>().into();
            } else {
                Arc::make_mut(children)[at] = Node::Fan(cut(&grown, depth).into());
            }
        }
    }
    None
}

/// Two nodes by the bit at this depth; one of them again a fan if all items went one way and are too many.
fn cut<T: Clone>(items: &[Item<T>], depth: u32) -> [Node<T>; 2] {
    let half = |bit: u32| {
        let half: Arc<[_]> =
            items.iter().filter(|item| item.hash << depth >> (u32::BITS - 1) == bit).cloned().collect();
        match half.len() > LEAF && depth + 1 < u32::BITS {
            true => Node::Fan(cut(&half, depth + 1).into()),
            false => Node::Leaf(half),
        }
    };
    [half(0), half(1)]
}

impl<T: Clone> Node<T> {
    fn halves(&self, depth: u32) -> [Self; 2] {
        match self {
            Self::Leaf(items) => cut(items, depth),
            Self::Fan(children) => {
                let (low, high) = children.split_at(children.len() / 2);
                [low, high].map(|half| if let [only] = half { only.clone() } else { Self::Fan(half.into()) })
            }
        }
    }

    fn leaf_len(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Fan(_) => LEAF,
        }
    }
}

fn remove<T: Clone>(node: &mut Node<T>, hash: u32, mut rest: u32, same: &impl Fn(&T) -> bool) -> Option<T> {
    match node {
        Node::Leaf(items) => {
            let at = place(items, hash, same)?;
            let old = items[at].value.clone();
            *items = items[..at].iter().chain(&items[at + 1..]).cloned().collect();
            Some(old)
        }
        Node::Fan(children) => {
            let at = turn(children.len(), &mut rest);
            let old = remove(&mut Arc::make_mut(children)[at], hash, rest, same);
            // Back to one leaf once all children together fill half of one.
            if children[at].leaf_len() < LEAF / 4 && children.iter().map(Node::leaf_len).sum::<usize>() <= LEAF / 2 {
                let items = children.iter().filter_map(|child| match child {
                    Node::Leaf(items) => Some(items.iter().cloned()),
                    Node::Fan(_) => None,
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

    /// Numbers whose hashes collide in every way: on their first bits, on all bits, not at all.
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
