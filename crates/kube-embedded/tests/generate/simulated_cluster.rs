//! The simulated cluster reacts to writes of other clients like a real one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::BTreeSet;
use std::time::Duration;

use kube_embedded::pretend::{Pretend, Size};
use kube_embedded::{Objects, Server};
use serde_json::{Value, json};

/// Long enough for any rollout of a few pods.
const WHILE: Duration = Duration::from_secs(60);

/// A cluster without disturbances of its own.
struct Calm {
    server: Server,
    cluster: Pretend,
}

impl Calm {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    /// A cluster with these additional objects.
    async fn with(objects: &[Value]) -> Self {
        let server = Server::builder().in_process().seed(1).garbage_collection().namespace_deletion();
        let server = server.start().await.unwrap();
        server.load(objects.iter().cloned()).unwrap();
        let cluster =
            Pretend::builder().size(Size { nodes: 4, pods: 24 }).rate(0.0).seed(1).start(&server).await.unwrap();
        // Waits until all actions of the initial population have completed.
        tokio::time::sleep(Duration::from_secs(130)).await;
        Self { server, cluster }
    }

    async fn end(self) {
        self.cluster.stop().await;
        self.server.shutdown().await;
    }

    fn objects(&self, api_version: &str, kind: &str, namespace: &str) -> Objects<'_> {
        self.server.objects(api_version, kind).unwrap().namespace(namespace)
    }

    fn deployments(&self, namespace: &str) -> Objects<'_> {
        self.objects("apps/v1", "Deployment", namespace)
    }

    /// The largest deployment of the simulation.
    fn one(&self) -> Named {
        let all = self.server.objects("apps/v1", "Deployment").unwrap().list();
        let largest = all.iter().max_by_key(|deployment| deployment["spec"]["replicas"].as_u64()).unwrap();
        Named { namespace: text(largest, "/metadata/namespace").into(), name: text(largest, "/metadata/name").into() }
    }

    fn deployment(&self, named: &Named) -> Value {
        self.deployments(&named.namespace).get(&named.name).unwrap()
    }

    /// The replica sets of a deployment, oldest revision first.
    fn sets(&self, named: &Named) -> Vec<Value> {
        let mut sets = self.objects("apps/v1", "ReplicaSet", &named.namespace).list();
        sets.retain(|set| text(set, "/metadata/ownerReferences/0/name") == named.name);
        sets.sort_by_key(revision);
        sets
    }

    /// The pods of a deployment that are not terminating.
    fn pods(&self, named: &Named) -> Vec<Value> {
        let sets: BTreeSet<String> = self.sets(named).iter().map(|set| text(set, "/metadata/uid").to_owned()).collect();
        let mut pods = self.objects("v1", "Pod", &named.namespace).list();
        pods.retain(|pod| {
            sets.contains(text(pod, "/metadata/ownerReferences/0/uid"))
                && pod.pointer("/metadata/deletionTimestamp").is_none()
        });
        pods
    }

    fn ready(&self, named: &Named) -> usize {
        self.pods(named).iter().filter(|pod| is_ready(pod)).count()
    }

    /// Asserts that a deployment has reached its desired state, and that its service has the
    /// addresses of its pods.
    #[track_caller]
    fn assert_settled(&self, named: &Named) {
        let deployment = self.deployment(named);
        let (wanted, status) = (deployment["spec"]["replicas"].as_u64().unwrap(), &deployment["status"]);
        for key in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
            assert_eq!(status[key].as_u64().unwrap_or(0), wanted, "{key} of {}: {status:#}", named.name);
        }
        assert_eq!(status["observedGeneration"], deployment["metadata"]["generation"]);
        assert_eq!(status.pointer("/unavailableReplicas"), None);
        assert_eq!((self.pods(named).len() as u64, self.ready(named) as u64), (wanted, wanted));
        let slices = self.objects("discovery.k8s.io/v1", "EndpointSlice", &named.namespace).list();
        let of_service =
            |slice: &&Value| slice["metadata"]["labels"]["kubernetes.io/service-name"] == named.name.as_str();
        for slice in slices.iter().filter(of_service) {
            let addresses: BTreeSet<&str> = slice["endpoints"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|endpoint| text(endpoint, "/addresses/0"))
                .collect();
            let pods = self.pods(named);
            assert_eq!(addresses, pods.iter().map(|pod| text(pod, "/status/podIP")).collect::<BTreeSet<&str>>());
        }
    }
}

struct Named {
    namespace: String,
    name: String,
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["annotations"]["deployment.kubernetes.io/revision"].as_str().unwrap().parse().unwrap()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn image(object: &Value) -> &str {
    ["/spec/containers/0/image", "/spec/template/spec/containers/0/image"]
        .iter()
        .find_map(|pointer| object.pointer(pointer)?.as_str())
        .unwrap_or_default()
}

/// A deployment with another image, as `kubectl set image` sends it.
fn with_image(mut deployment: Value, image: &str) -> Value {
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
    deployment
}

/// A deployment as `kubectl create deployment` creates it, and its service.
fn brought(replicas: u64) -> [Value; 2] {
    let labels = json!({"app": "mine"});
    let container = json!({"name": "web", "image": "nginx:1.27", "ports": [{"name": "http", "containerPort": 8080}]});
    [
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "mine", "namespace": "default", "labels": labels},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
        }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "mine", "namespace": "default"},
            "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": "http"}]},
        }),
    ]
}

fn mine() -> Named {
    Named { namespace: "default".into(), name: "mine".into() }
}

#[tokio::test(start_paused = true)]
async fn a_new_image_is_rolled_out_and_enough_pods_are_ready_all_the_while() {
    let calm = Calm::new().await;
    let named = calm.one();
    let before = calm.deployment(&named);
    let wanted = before["spec"]["replicas"].as_u64().unwrap() as usize;
    calm.server.update(&with_image(before.clone(), "example.com/new:2")).unwrap();
    let (mut fewest, mut most) = (usize::MAX, 0);
    for _ in 0..WHILE.as_millis() / 250 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        fewest = fewest.min(calm.ready(&named));
        most = most.max(calm.pods(&named).len());
    }
    assert!(fewest >= wanted - wanted / 4, "{fewest} of {wanted}");
    assert!(most <= wanted + wanted.div_ceil(4), "{most} for {wanted}");
    assert!(calm.pods(&named).iter().all(|pod| image(pod) == "example.com/new:2"));
    calm.assert_settled(&named);
    let after = calm.deployment(&named);
    assert_eq!(
        (revision(&after), revision(calm.sets(&named).last().unwrap())),
        (revision(&before) + 1, revision(&before) + 1)
    );
    let events = calm.objects("v1", "Event", &named.namespace).list();
    let is_recorded = |reason: &str| {
        events.iter().any(|event| event["reason"] == reason && event["involvedObject"]["name"] == named.name.as_str())
    };
    assert!(is_recorded("ScalingReplicaSet"));
    calm.end().await;
}

#[tokio::test(start_paused = true)]
async fn scaling_makes_and_ends_pods_and_rolls_nothing_out() {
    let calm = Calm::new().await;
    let named = calm.one();
    let sets = calm.sets(&named).len();
    for replicas in [12, 3, 0, 2] {
        calm.deployments(&named.namespace).patch(&named.name, &json!({"spec": {"replicas": replicas}})).unwrap();
        tokio::time::sleep(WHILE).await;
        calm.assert_settled(&named);
        assert_eq!(calm.sets(&named).len(), sets);
    }
    calm.end().await;
}

#[tokio::test(start_paused = true)]
async fn going_back_takes_the_old_replica_set_again() {
    let calm = Calm::new().await;
    let named = calm.one();
    let first = calm.deployment(&named);
    calm.server.update(&with_image(first.clone(), "example.com/worse:2")).unwrap();
    tokio::time::sleep(WHILE).await;
    let worse = calm.deployment(&named);
    let mut undone = worse.clone();
    undone["spec"]["template"] = first["spec"]["template"].clone();
    calm.server.update(&undone).unwrap();
    tokio::time::sleep(WHILE).await;
    calm.assert_settled(&named);
    assert!(calm.pods(&named).iter().all(|pod| image(pod) == image(&first)));
    let sets = calm.sets(&named);
    assert_eq!((sets.len(), image(sets.last().unwrap())), (2, image(&first)));
    assert_eq!(revision(&calm.deployment(&named)), revision(&worse) + 1);
    calm.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_created_runs_behind_its_service_and_what_is_deleted_goes() {
    let calm = Calm::new().await;
    for object in brought(3) {
        calm.server.create(&object).unwrap();
    }
    tokio::time::sleep(WHILE).await;
    calm.assert_settled(&mine());
    let slices = calm.objects("discovery.k8s.io/v1", "EndpointSlice", "default").list();
    assert_eq!((slices.len(), slices[0]["endpoints"].as_array().map(Vec::len)), (1, Some(3)));
    assert_eq!(slices[0]["ports"][0]["port"], 8080);

    let victim = text(&calm.pods(&mine())[0], "/metadata/name").to_owned();
    calm.objects("v1", "Pod", "default").delete(&victim).unwrap();
    tokio::time::sleep(WHILE).await;
    calm.assert_settled(&mine());
    assert!(calm.objects("v1", "Pod", "default").get(&victim).is_err());

    calm.deployments("default").delete("mine").unwrap();
    calm.objects("v1", "Service", "default").delete("mine").unwrap();
    tokio::time::sleep(WHILE).await;
    for (api_version, kind) in [("apps/v1", "ReplicaSet"), ("v1", "Pod"), ("discovery.k8s.io/v1", "EndpointSlice")] {
        assert_eq!(calm.objects(api_version, kind, "default").list(), Vec::<Value>::new(), "{kind}");
    }
    calm.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_there_before_the_cluster_is_brought_to_life_too() {
    let calm = Calm::with(&brought(2)).await;
    calm.assert_settled(&mine());
    calm.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_of_the_story_that_is_deleted_takes_its_pods_along() {
    let calm = Calm::new().await;
    let named = calm.one();
    let pods = calm.server.objects("v1", "Pod").unwrap().len();
    let own = calm.pods(&named).len();
    calm.deployments(&named.namespace).delete(&named.name).unwrap();
    tokio::time::sleep(WHILE).await;
    assert_eq!((calm.pods(&named).len(), calm.sets(&named).len()), (0, 0));
    assert_eq!(calm.server.objects("v1", "Pod").unwrap().len(), pods - own);
    calm.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_a_rollout_up_and_recreating_never_mixes() {
    let calm = Calm::new().await;
    let [mut deployment, _] = brought(3);
    deployment["spec"]["strategy"] = json!({"type": "Recreate"});
    calm.server.create(&deployment).unwrap();
    tokio::time::sleep(WHILE).await;
    let deployments = calm.deployments("default");
    deployments.patch("mine", &json!({"spec": {"paused": true}})).unwrap();
    calm.server.update(&with_image(calm.deployment(&mine()), "nginx:1.28")).unwrap();
    tokio::time::sleep(WHILE).await;
    assert!(calm.pods(&mine()).iter().all(|pod| image(pod) == "nginx:1.27"));
    deployments.patch("mine", &json!({"spec": {"paused": false}})).unwrap();
    for _ in 0..WHILE.as_millis() / 250 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let images: BTreeSet<String> = calm.pods(&mine()).iter().map(|pod| image(pod).to_owned()).collect();
        assert!(images.len() < 2, "{images:?}");
    }
    assert!(calm.pods(&mine()).iter().all(|pod| image(pod) == "nginx:1.28"));
    calm.assert_settled(&mine());
    calm.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_its_own_runs_or_succeeds_and_waits_for_a_node_that_takes_it() {
    let calm = Calm::new().await;
    let pod = |name: &str, spec: Value| {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec});
        pod["spec"]["containers"] = json!([{"name": "c", "image": "busybox"}]);
        calm.server.create(&pod).unwrap();
    };
    let pods = calm.objects("v1", "Pod", "default");
    let phase = |name: &str| text(&pods.get(name).unwrap(), "/status/phase").to_owned();
    pod("stays", json!({}));
    pod("ends", json!({"restartPolicy": "Never"}));
    pod("elsewhere", json!({"nodeSelector": {"disk": "none-has-this"}}));
    tokio::time::sleep(WHILE).await;
    assert_eq!(
        (phase("stays"), phase("ends"), phase("elsewhere")),
        ("Running".into(), "Succeeded".into(), "Pending".into())
    );
    assert!(is_ready(&pods.get("stays").unwrap()));
    assert_eq!(text(&pods.get("elsewhere").unwrap(), "/status/conditions/0/reason"), "Unschedulable");

    let nodes = calm.server.objects("v1", "Node").unwrap();
    let names: Vec<String> = nodes.list().iter().map(|node| text(node, "/metadata/name").to_owned()).collect();
    for name in &names[1..] {
        nodes.patch(name, &json!({"spec": {"unschedulable": true}})).unwrap();
    }
    tokio::time::sleep(WHILE).await;
    pod("last", json!({}));
    nodes.patch(&names[0], &json!({"metadata": {"labels": {"disk": "none-has-this"}}})).unwrap();
    tokio::time::sleep(WHILE).await;
    assert_eq!((phase("last"), phase("elsewhere")), ("Running".into(), "Running".into()));
    for name in ["last", "elsewhere"] {
        assert_eq!(text(&pods.get(name).unwrap(), "/spec/nodeName"), names[0]);
    }
    calm.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_the_cluster_writes_says_who_wrote_it() {
    let calm = Calm::new().await;
    calm.server.create(&brought(1)[0]).unwrap();
    tokio::time::sleep(WHILE).await;
    let managers = |object: &Value| {
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| text(entry, "/manager").to_owned()).collect::<BTreeSet<String>>()
    };
    let expected = ["kube-controller-manager", "kube-scheduler", "kubelet"].map(str::to_owned);
    assert_eq!(managers(&calm.pods(&mine())[0]), BTreeSet::from(expected));
    assert!(managers(&calm.sets(&mine())[0]).contains("kube-controller-manager"));
    calm.end().await;
}

/// A workload of another client in the default namespace.
fn workload(api_version: &str, kind: &str, mut spec: Value) -> Value {
    spec["template"]["metadata"]["labels"] = json!({"app": "theirs"});
    if kind != "Job" {
        spec["selector"] = json!({"matchLabels": {"app": "theirs"}});
    }
    spec["template"]["spec"]["containers"] = json!([{"name": "c", "image": "i:1"}]);
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "theirs", "namespace": "default"}, "spec": spec})
}

/// The images of the pods of a workload, by name.
fn pods_of(calm: &Calm) -> Vec<(String, String)> {
    let mut pods = calm.objects("v1", "Pod", "default").list();
    pods.retain(|pod| pod["metadata"]["labels"]["app"] == "theirs" && is_ready(pod));
    pods.iter().map(|pod| (text(pod, "/metadata/name").to_owned(), image(pod).to_owned())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_is_rolled_out_as_kubectl_waits_for_it() {
    let calm = Calm::new().await;
    let sets = calm.objects("apps/v1", "StatefulSet", "default");
    calm.server.create(&workload("apps/v1", "StatefulSet", json!({"replicas": 3, "serviceName": "theirs"}))).unwrap();
    tokio::time::sleep(WHILE).await;
    let first = sets.get("theirs").unwrap();
    let numbers = |set: &Value| {
        ["replicas", "readyReplicas", "updatedReplicas", "currentReplicas", "observedGeneration"]
            .map(|field| set["status"][field].as_u64().unwrap_or(0))
    };
    assert_eq!(numbers(&first), [3, 3, 3, 3, 1]);
    assert_eq!(first["status"]["currentRevision"], first["status"]["updateRevision"]);
    let of_image = |image: &str| [0, 1, 2].map(|at| (format!("theirs-{at}"), image.to_owned())).to_vec();
    assert_eq!(pods_of(&calm), of_image("i:1"));
    calm.server.update(&with_image(first.clone(), "i:2")).unwrap();
    tokio::time::sleep(2 * WHILE).await;
    let second = sets.get("theirs").unwrap();
    assert_eq!(numbers(&second), [3, 3, 3, 3, 2]);
    assert_ne!(second["status"]["currentRevision"], first["status"]["currentRevision"]);
    assert_eq!(second["status"]["currentRevision"], second["status"]["updateRevision"]);
    assert_eq!(pods_of(&calm), of_image("i:2"));
    let mut fewer = second;
    fewer["spec"]["replicas"] = json!(1);
    calm.server.update(&fewer).unwrap();
    tokio::time::sleep(WHILE).await;
    assert_eq!(pods_of(&calm), of_image("i:2")[..1]);
    calm.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_runs_on_every_node() {
    let calm = Calm::new().await;
    let sets = calm.objects("apps/v1", "DaemonSet", "default");
    calm.server.create(&workload("apps/v1", "DaemonSet", json!({}))).unwrap();
    tokio::time::sleep(WHILE).await;
    let first = sets.get("theirs").unwrap();
    let numbers = |set: &Value| {
        ["desiredNumberScheduled", "numberAvailable", "updatedNumberScheduled", "numberReady", "observedGeneration"]
            .map(|field| set["status"][field].as_u64().unwrap_or(0))
    };
    assert_eq!(numbers(&first), [4, 4, 4, 4, 1]);
    calm.server.update(&with_image(first, "i:2")).unwrap();
    tokio::time::sleep(2 * WHILE).await;
    assert_eq!(numbers(&sets.get("theirs").unwrap()), [4, 4, 4, 4, 2]);
    assert!(pods_of(&calm).iter().all(|(_, image)| image == "i:2"));
    calm.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_job_completes_when_enough_pods_have() {
    let calm = Calm::new().await;
    let template = json!({"spec": {"restartPolicy": "Never"}});
    let spec = json!({"completions": 3, "parallelism": 2, "template": template});
    calm.server.create(&workload("batch/v1", "Job", spec)).unwrap();
    tokio::time::sleep(2 * WHILE).await;
    let job = calm.objects("batch/v1", "Job", "default").get("theirs").unwrap();
    assert_eq!((&job["status"]["succeeded"], job["status"].get("active")), (&json!(3), None), "{job:#}");
    let condition = job["status"]["conditions"].as_array().unwrap().iter().find(|each| each["type"] == "Complete");
    assert_eq!(condition.unwrap()["status"], "True");
    assert!(job["status"]["completionTime"].is_string());
    calm.end().await;
}

#[tokio::test(start_paused = true)]
async fn pods_beyond_the_limit_of_one_step_are_created_in_the_next_one() {
    const PODS: usize = 510;
    let calm = Calm::new().await;
    let spec = json!({"parallelism": PODS, "completions": PODS, "template": {"spec": {"restartPolicy": "Never"}}});
    calm.server.create(&workload("batch/v1", "Job", spec)).unwrap();
    tokio::time::sleep(Duration::from_millis(150)).await;
    let pods = calm.objects("v1", "Pod", "default").list();
    let owned = pods.iter().filter(|pod| text(pod, "/metadata/ownerReferences/0/kind") == "Job");
    assert_eq!(owned.count(), PODS);
    calm.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_huge_share_of_unavailable_pods_is_all_of_them() {
    let calm = Calm::new().await;
    let sets = calm.objects("apps/v1", "DaemonSet", "default");
    for share in ["99999999999%", "9999999999999999999%", "99999999999999999999999%"] {
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": share}});
        calm.server.create(&workload("apps/v1", "DaemonSet", json!({"updateStrategy": strategy}))).unwrap();
        tokio::time::sleep(WHILE).await;
        assert_eq!(sets.get("theirs").unwrap()["status"]["numberAvailable"], 4, "{share}");
        sets.delete("theirs").unwrap();
        tokio::time::sleep(WHILE).await;
    }
    calm.end().await;
}
