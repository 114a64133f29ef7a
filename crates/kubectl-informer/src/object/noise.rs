//! Fields whose change carries no information by itself.

use serde_json::Value;

use super::diff::{Difference, Segment, diff};

/// Whether such changes are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noise {
    Muted,
    Shown,
}

/// Fields that are written along with others, or to say that nothing has changed.
const FIELDS: [&str; 6] =
    ["generation", "lastHeartbeatTime", "lastProbeTime", "lastTransitionTime", "lastUpdateTime", "observedGeneration"];
/// Annotations of leaders that renew their claim.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

impl Noise {
    /// The differences that are shown.
    pub(crate) fn diff<'v>(self, kind: &str, old: &'v Value, new: &'v Value) -> Vec<Difference<'v>> {
        let mut all = diff(old, new);
        if self == Self::Muted {
            all.retain(|difference| !is_noise(kind, &difference.path));
        }
        all
    }
}

/// Whether two states differ, and only in fields whose change carries no information.
pub(crate) fn is_noise_only(kind: &str, old: &Value, new: &Value) -> bool {
    let all = diff(old, new);
    !all.is_empty() && all.iter().all(|difference| is_noise(kind, &difference.path))
}

fn is_noise(kind: &str, path: &[Segment]) -> bool {
    match path.last() {
        Some(Segment::Field(name)) => {
            FIELDS.contains(&name.as_str()) || name == LEADER || kind == "Lease" && name == "renewTime"
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_renewed_lease_and_a_heartbeat_are_muted_unless_asked_for() {
        let lease = |time: &str| json!({"spec": {"renewTime": time, "holderIdentity": "a"}});
        let node = |time: &str, ready: &str| json!({"status": {"conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": time}]}});
        let count = |noise: Noise, kind: &str, old: &Value, new: &Value| noise.diff(kind, old, new).len();
        assert_eq!(count(Noise::Muted, "Lease", &lease("1"), &lease("2")), 0);
        assert_eq!(count(Noise::Shown, "Lease", &lease("1"), &lease("2")), 1);
        assert_eq!(count(Noise::Muted, "Widget", &lease("1"), &lease("2")), 1);
        assert_eq!(count(Noise::Muted, "Node", &node("1", "True"), &node("2", "True")), 0);
        assert_eq!(count(Noise::Muted, "Node", &node("1", "True"), &node("2", "False")), 1);
    }
}
