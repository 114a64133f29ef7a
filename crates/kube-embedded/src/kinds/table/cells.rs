//! Table cells of the built-in kinds.

mod access;
mod autoscaler;
mod cluster;
mod config;
mod device;
mod network;
mod node;
mod pod;
mod storage;
pub(crate) mod words;
mod workload;

use serde_json::Value;

use super::Completed;
use super::age::Moment;

/// Computes the cells of one object.
pub(super) type Cells = fn(&Value, Moment) -> Vec<Value>;

/// Builds a row from values of any JSON type.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$(serde_json::Value::from($cell)),*] };
}
use cells;

/// The cell function of a built-in kind. `None` if its table has only the name and the creation
/// time.
pub(super) fn of(group: &str, plural: &str) -> Option<Cells> {
    let cells: Cells = match (group, plural) {
        ("", "componentstatuses") => cluster::component_status,
        ("", "configmaps") => config::config_map,
        ("", "endpoints") => network::endpoints,
        ("" | "events.k8s.io", "events") => cluster::event,
        ("", "namespaces") => cluster::namespace,
        ("", "nodes") => node::node,
        ("", "persistentvolumeclaims") => storage::claim,
        ("", "persistentvolumes") => storage::volume,
        ("", "pods") => pod::pod,
        ("", "podtemplates") => workload::pod_template,
        ("", "replicationcontrollers") => workload::replication_controller,
        ("", "resourcequotas") => config::resource_quota,
        ("", "secrets") => config::secret,
        ("", "services") => network::service,
        ("apps", "controllerrevisions") => workload::controller_revision,
        ("apps", "daemonsets") => workload::daemon_set,
        ("apps", "deployments") => workload::deployment,
        ("apps", "replicasets") => workload::replica_set,
        ("apps", "statefulsets") => workload::stateful_set,
        ("autoscaling", "horizontalpodautoscalers") => autoscaler::autoscaler,
        ("autoscaling", "scale") => autoscaler::scale,
        ("batch", "cronjobs") => workload::cron_job,
        ("batch", "jobs") => workload::job,
        ("certificates.k8s.io", "certificatesigningrequests") => access::signing_request,
        ("certificates.k8s.io", "clustertrustbundles") => access::trust_bundle,
        ("certificates.k8s.io", "podcertificaterequests") => access::pod_certificate_request,
        ("networking.k8s.io", "ingressclasses") => network::ingress_class,
        ("networking.k8s.io", "ingresses") => network::ingress,
        ("networking.k8s.io", "ipaddresses") => network::ip_address,
        ("networking.k8s.io", "networkpolicies") => network::network_policy,
        ("networking.k8s.io", "servicecidrs") => network::service_cidr,
        ("discovery.k8s.io", "endpointslices") => network::endpoint_slice,
        ("policy", "poddisruptionbudgets") => workload::disruption_budget,
        ("rbac.authorization.k8s.io", "clusterrolebindings" | "rolebindings") => access::role_binding,
        ("storage.k8s.io", "csidrivers") => storage::driver,
        ("storage.k8s.io", "csinodes") => storage::csi_node,
        ("storage.k8s.io", "storageclasses") => storage::class,
        ("storage.k8s.io", "volumeattachments") => storage::attachment,
        ("storage.k8s.io", "volumeattributesclasses") => storage::attributes_class,
        ("admissionregistration.k8s.io", "mutatingadmissionpolicies") => access::mutating_policy,
        ("admissionregistration.k8s.io", "validatingadmissionpolicies") => access::validating_policy,
        ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings" | "validatingadmissionpolicybindings") => {
            access::policy_binding
        }
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations" | "validatingwebhookconfigurations") => {
            access::webhooks
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => cluster::definition,
        ("apiregistration.k8s.io", "apiservices") => cluster::api_service,
        ("scheduling.k8s.io", "priorityclasses") => cluster::priority_class,
        ("coordination.k8s.io", "leases") => cluster::lease,
        ("node.k8s.io", "runtimeclasses") => cluster::runtime_class,
        ("resource.k8s.io", "devicetaintrules") => device::taint_rule,
        ("resource.k8s.io", "resourceclaims") => device::claim,
        ("resource.k8s.io", "resourceslices") => device::slice,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => cluster::flow_schema,
        ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations") => cluster::priority_level,
        ("storagemigration.k8s.io", "storageversionmigrations") => cluster::storage_migration,
        ("", "serviceaccounts") | ("resource.k8s.io", "deviceclasses" | "resourceclaimtemplates") => name_and_age,
        // limitranges, roles, clusterroles, csistoragecapacities
        _ => return None,
    };
    Some(cells)
}

/// The default cells: the name and the creation time.
pub(super) fn name_and_time(object: &Value, _: Moment) -> Vec<Value> {
    let made = &object["metadata"]["creationTimestamp"];
    cells![words::name(object), made.as_str().unwrap_or("0001-01-01T00:00:00Z")]
}

pub(super) fn name_and_age(object: &Value, now: Moment) -> Vec<Value> {
    cells![words::name(object), words::age(object, now)]
}

/// Whether and how a pod completed.
pub(super) fn completed(object: &Value) -> Option<Completed> {
    match object["status"]["phase"].as_str() {
        Some("Succeeded") => Some(Completed::Succeeded),
        Some("Failed") => Some(Completed::Failed),
        _ => None,
    }
}

/// Whether a storage class is annotated as the default. If several are, the youngest is the
/// default.
pub(super) fn is_marked_default(class: &Value) -> bool {
    storage::is_marked_default(class)
}
