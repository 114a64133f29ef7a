//! Which columns of a table fit, and how wide they are.

/// The space between columns.
pub(super) const GAP: usize = 2;
/// A column is not narrowed below this width.
const MIN_WIDTH: usize = 12;
/// Columns that are dropped last.
const KEPT: [&str; 6] = ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"];

/// The shown columns with their widths, and the number of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fitted {
    pub(super) shown: Vec<(usize, usize)>,
    pub(super) hidden: usize,
}

/// Chooses columns for a width: first long ones are narrowed, then the less important are dropped,
/// the last ones first. The first column and the name are never dropped.
pub(super) fn fit(head: &[String], widths: &[usize], width: usize) -> Fitted {
    let mut shown: Vec<(usize, usize)> = widths.iter().copied().enumerate().collect();
    let total = |shown: &[(usize, usize)]| {
        shown.iter().map(|(_, width)| width).sum::<usize>() + GAP * shown.len().saturating_sub(1)
    };
    loop {
        let excess = total(&shown).saturating_sub(width);
        if excess == 0 {
            break;
        }
        // The widest column gives way, down to the width of the next.
        let widest = shown.iter().enumerate().max_by_key(|(_, (_, width))| *width).map(|(at, &(_, width))| (at, width));
        if let Some((at, widest)) = widest
            && widest > narrow(head, shown[at].0)
        {
            let next = shown.iter().map(|(_, width)| *width).filter(|width| *width < widest).max().unwrap_or(0);
            let least = next.max(narrow(head, shown[at].0)).min(widest - 1);
            shown[at].1 = least.max(widest.saturating_sub(excess));
            continue;
        }
        let is_kept = |column: &(usize, usize)| {
            column.0 == 0 || head.get(column.0).is_some_and(|name| KEPT.contains(&name.as_str()))
        };
        let dropped = shown.iter().rposition(|column| !is_kept(column));
        let dropped =
            dropped.or_else(|| shown.iter().rposition(|column| head.get(column.0).is_none_or(|name| name != "NAME")));
        match dropped.filter(|_| shown.len() > 1) {
            Some(at) => drop(shown.remove(at)),
            None => {
                shown.iter_mut().for_each(|column| column.1 = column.1.min(width));
                break;
            }
        }
        // What is left may have its full width again.
        shown.iter_mut().for_each(|column| column.1 = widths[column.0]);
    }
    Fitted { hidden: widths.len() - shown.len(), shown }
}

fn narrow(head: &[String], column: usize) -> usize {
    MIN_WIDTH.max(head.get(column).map_or(0, String::len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(columns: &[(&str, usize)], width: usize) -> (Vec<(String, usize)>, usize) {
        let head: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        let widths: Vec<usize> = columns.iter().map(|(_, width)| *width).collect();
        let fitted = fit(&head, &widths, width);
        (fitted.shown.into_iter().map(|(at, width)| (head[at].clone(), width)).collect(), fitted.hidden)
    }

    #[test]
    fn the_age_stays_when_columns_are_narrowed_or_dropped() {
        let columns = [("NAME", 40), ("READY", 5), ("STATUS", 9), ("NODE", 30), ("AGE", 4)];
        let named =
            |shown: &[(String, usize)]| shown.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>().join(" ");
        let (shown, hidden) = fitted(&columns, 100);
        assert_eq!((named(&shown).as_str(), hidden), ("NAME READY STATUS NODE AGE", 0));
        let (shown, hidden) = fitted(&columns, 60);
        assert_eq!((named(&shown).as_str(), hidden), ("NAME READY STATUS NODE AGE", 0));
        assert!(shown.iter().map(|(_, width)| width + GAP).sum::<usize>() - GAP <= 60, "{shown:?}");
        let (shown, hidden) = fitted(&columns, 40);
        assert_eq!((named(&shown).as_str(), hidden), ("NAME READY STATUS AGE", 1));
        let (shown, hidden) = fitted(&columns, 5);
        assert_eq!((shown, hidden), (vec![("NAME".to_owned(), 5)], 4));
    }
}
