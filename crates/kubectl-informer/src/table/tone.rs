//! Colours of cells that say whether something is well.

use crate::terminal::paint::Tone;

/// The tone of a cell in the column of this name; most cells have none.
pub(crate) fn tone_of(column: &str, cell: &str) -> Option<Tone> {
    match column {
        "STATUS" | "PHASE" | "STATE" | "CONDITION" => of_status(cell),
        "READY" | "COMPLETIONS" => match cell.split_once('/') {
            Some((ready, wanted)) if ready != wanted => Some(Tone::Updated),
            None if cell == "False" => Some(Tone::Updated),
            _ => None,
        },
        "TYPE" if cell == "Warning" => Some(Tone::Updated),
        "AGE" | "LAST SEEN" | "LABELS" => Some(Tone::Quiet),
        _ if cell == "<none>" => Some(Tone::Quiet),
        _ => None,
    }
}

fn of_status(status: &str) -> Option<Tone> {
    let main = status.strip_prefix("Init:").unwrap_or(status);
    match main {
        "Running" | "Ready" | "Active" | "Bound" | "Available" | "Complete" => Some(Tone::Added),
        "Completed" | "Succeeded" | "Released" => Some(Tone::Quiet),
        _ if ["Error", "BackOff", "Failed", "Evicted", "OOMKilled", "Err", "NotReady", "Lost", "Unknown", "Dead"]
            .iter()
            .any(|word| main.contains(word)) =>
        {
            Some(Tone::Deleted)
        }
        "" => None,
        _ => Some(Tone::Updated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_shows_whether_something_is_well() {
        for (column, cell, tone) in [
            ("STATUS", "Running", Some(Tone::Added)),
            ("STATUS", "CrashLoopBackOff", Some(Tone::Deleted)),
            ("STATUS", "Init:ImagePullBackOff", Some(Tone::Deleted)),
            ("STATUS", "Init:0/2", Some(Tone::Updated)),
            ("STATUS", "ContainerCreating", Some(Tone::Updated)),
            ("STATUS", "Ready,SchedulingDisabled", Some(Tone::Updated)),
            ("READY", "1/2", Some(Tone::Updated)),
            ("READY", "2/2", None),
            ("NAME", "Running", None),
        ] {
            assert_eq!(tone_of(column, cell), tone, "{column} {cell}");
        }
    }
}
