//! Which columns of a table fit, and how wide they are.

/// The space between columns.
pub(super) const GAP: usize = 2;
/// A column is not narrowed below this width.
const MIN_WIDTH: usize = 12;
/// Nor the name below this one, while there are columns of less importance.
const MIN_NAME_WIDTH: usize = 28;
/// Columns that are dropped last, the least important of them first.
const KEPT: [&str; 6] = ["RESTARTS", "READY", "AGE", "STATUS", "NAMESPACE", "NAME"];

/// The shown columns with their widths, and the number of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fitted {
    pub(super) shown: Vec<(usize, usize)>,
    pub(super) hidden: usize,
}

/// Chooses columns for a width: first long ones are narrowed, then the less important are dropped,
/// the last ones first. The name is never dropped; without one, the first column.
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
        let can_give = |at: usize, width: usize| width.saturating_sub(least_width(head, widths, &shown, at)) > 0;
        let widest = shown.iter().enumerate().filter(|(at, (_, width))| can_give(*at, *width));
        let widest = widest.max_by_key(|(_, (_, width))| *width).map(|(at, &(_, width))| (at, width));
        if let Some((at, widest)) = widest
            && let least = least_width(head, widths, &shown, at)
            && widest > least
        {
            let next = shown.iter().map(|(_, width)| *width).filter(|width| *width < widest).max().unwrap_or(0);
            let least = next.max(least).min(widest - 1);
            shown[at].1 = least.max(widest.saturating_sub(excess));
            continue;
        }
        let named = |name: &str| shown.iter().position(|column| head.get(column.0).is_some_and(|own| own == name));
        let dropped = shown.iter().rposition(|column| !is_kept(head, column.0));
        match dropped.or_else(|| KEPT[..KEPT.len() - 1].iter().find_map(|name| named(name))).filter(|_| shown.len() > 1)
        {
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

/// The width below which the column at this place is not narrowed.
fn least_width(head: &[String], widths: &[usize], shown: &[(usize, usize)], at: usize) -> usize {
    let column = shown[at].0;
    let name = head.get(column).map_or("", String::as_str);
    let has_less_important = shown.iter().any(|other| !is_kept(head, other.0));
    match is_kept(head, column) && has_less_important {
        true if name == "NAME" => MIN_NAME_WIDTH,
        true => widths[column],
        false => MIN_WIDTH.max(name.len()),
    }
}

/// Whether a column is dropped after others: those of [`KEPT`], and the first one.
fn is_kept(head: &[String], column: usize) -> bool {
    column == 0 || head.get(column).is_some_and(|name| KEPT.contains(&name.as_str()))
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
        let (shown, hidden) = fitted(&columns, 68);
        assert_eq!((named(&shown).as_str(), hidden), ("NAME READY STATUS NODE AGE", 0));
        let (shown, hidden) = fitted(&columns, 60);
        assert_eq!((named(&shown).as_str(), hidden), ("NAME READY STATUS AGE", 1), "rather than a short name");
        assert!(shown.iter().map(|(_, width)| width + GAP).sum::<usize>() - GAP <= 60, "{shown:?}");
        let (shown, hidden) = fitted(&columns, 40);
        assert_eq!((named(&shown).as_str(), hidden), ("NAME READY STATUS AGE", 1));
        let (shown, hidden) = fitted(&columns, 5);
        assert_eq!((shown, hidden), (vec![("NAME".to_owned(), 5)], 4));
    }

    #[test]
    fn restarts_give_way_to_the_age() {
        let columns = [("NAMESPACE", 13), ("NAME", 34), ("READY", 5), ("STATUS", 16), ("RESTARTS", 14), ("AGE", 4)];
        let (shown, hidden) = fitted(&columns, 54);
        let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, hidden), (vec!["NAMESPACE", "NAME", "READY", "STATUS", "AGE"], 1));
    }
}
