//! How fast a search is: `cargo run --release -p kube-simulation --example figures [PLANS]`.
//!
//! It searches the example `website` of kube-controller, from the learning runs to the verdict.

#[allow(dead_code, reason = "its `main`")]
#[path = "../../kube-controller/examples/website.rs"]
mod website;

use kube::{Client, CustomResourceExt as _};
use kube_simulation::Simulation;
use serde_json::json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let budget = std::env::args().nth(1).map_or(Ok(1000), |plans| plans.parse())?;
    let site = |name: &str| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": name, "namespace": "default"},
            "spec": {"image": "web:1", "host": format!("{name}.example.com"), "replicas": 2},
        })
    };
    let controller = async |client: Client| match website::manager(&client, website::Dns::default()) {
        Ok(manager) => drop(manager.run_until(std::future::pending()).await),
        Err(error) => eprintln!("the manager cannot be built: {error}"),
    };
    let report = Simulation::new(controller)
        .object(&website::Website::crd())
        .create(&site("blog"))
        .until_quiet()
        .change("example.com/v1", "Website", "blog", &json!({"spec": {"image": "web:2"}}))
        .until_quiet()
        .delete("example.com/v1", "Website", "blog")
        .create(&site("shop"))
        .until_quiet()
        .budget(budget)
        .search();
    print!("{report}");
    let (plans, seconds) = (report.plans_run(), report.duration().as_secs_f64());
    println!("\n{plans} plans in {seconds:.1} s, {:.0} plans a second", plans as f64 / seconds);
    Ok(())
}
