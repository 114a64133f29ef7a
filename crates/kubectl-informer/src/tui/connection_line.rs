//! What is said of a connection: connected, or since when it is lost and why.

use kube_informer::{Condition, Health};
use tokio::time::Instant;

use crate::duration::short;
use crate::terminal::paint::Tone;
use crate::terminal::styled_line::StyledLine;

/// Describes the state of an informer.
pub(crate) fn connection_line(health: &Health, now: Instant) -> StyledLine {
    let line = StyledLine::default();
    match &health.condition {
        Condition::Synced => line.toned(Tone::Added, "connected"),
        Condition::Listing { objects, remaining } => {
            let of = remaining.map(|left| format!(" of {}", objects.saturating_add(left))).unwrap_or_default();
            line.toned(Tone::Updated, &format!("listing, {objects}{of} objects"))
        }
        Condition::Degraded { cause, since, next_try } => {
            let what = match cause.code() {
                Some(401 | 403) => "refused",
                Some(_) => "failing",
                None => "disconnected",
            };
            let lost = short(now.saturating_duration_since(*since));
            let next = match next_try.map(|next| next.saturating_duration_since(now)) {
                Some(wait) if wait.as_secs() > 0 => format!(", retrying in {}", short(wait)),
                _ => ", retrying now".to_owned(),
            };
            line.toned(Tone::Deleted, &format!("{what} for {lost}{next}: {cause}"))
        }
        Condition::Absent { .. } => line.toned(Tone::Deleted, "the server does not serve this kind"),
        Condition::Stopped => line.toned(Tone::Deleted, "stopped"),
        _ => line.toned(Tone::Quiet, "not started"),
    }
}
