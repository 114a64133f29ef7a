// A controller of websites with controller-runtime, which does what rig/src/bin/websites_ours.rs
// does:
//
//	websites URL
//
// Answers each line of its standard input with its figures.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	manager = "websites"
	workers = 4
)

type reconciler struct {
	client.Client
	done atomic.Int64
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var site Website
	if err := r.Get(ctx, request.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owner := metaapply.OwnerReference().
		WithAPIVersion(groupVersion.String()).WithKind("Website").WithName(site.Name).WithUID(site.UID).
		WithController(true).WithBlockOwnerDeletion(true)
	child := deployment(&site).WithOwnerReferences(owner)
	forced := []client.ApplyOption{client.FieldOwner(manager), client.ForceOwnership}
	if err := r.Apply(ctx, child, forced...); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.Apply(ctx, service(&site).WithOwnerReferences(owner), forced...); err != nil {
		return ctrl.Result{}, err
	}
	status := &websiteApply{
		TypeMetaApplyConfiguration: *metaapply.TypeMeta().WithAPIVersion(groupVersion.String()).WithKind("Website"),
		ObjectMetaApplyConfiguration: metaapply.ObjectMeta().
			WithName(site.Name).WithNamespace(site.Namespace).WithUID(site.UID),
		Status: WebsiteStatus{ObservedGeneration: site.Generation, URL: "https://" + site.Spec.Host},
	}
	if child.Status != nil && child.Status.ReadyReplicas != nil {
		status.Status.ReadyReplicas = *child.Status.ReadyReplicas
	}
	if err := r.Status().Apply(ctx, status, client.FieldOwner(manager), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	r.done.Add(1)
	return ctrl.Result{}, nil
}

func deployment(site *Website) *appsapply.DeploymentApplyConfiguration {
	labels := map[string]string{"app": site.Name}
	container := coreapply.Container().WithName("web").WithImage(site.Spec.Image).
		WithEnv(coreapply.EnvVar().WithName("HOST").WithValue(site.Spec.Host)).
		WithPorts(coreapply.ContainerPort().WithContainerPort(8080).WithName("http").WithProtocol(corev1.ProtocolTCP)).
		WithResources(coreapply.ResourceRequirements().WithRequests(corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
		}))
	template := coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(coreapply.PodSpec().WithContainers(container))
	return appsapply.Deployment(site.Name, site.Namespace).WithLabels(labels).WithSpec(appsapply.DeploymentSpec().
		WithReplicas(site.Spec.Replicas).
		WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(template))
}

func service(site *Website) *coreapply.ServiceApplyConfiguration {
	labels := map[string]string{"app": site.Name}
	port := coreapply.ServicePort().WithName("http").WithPort(80).
		WithTargetPort(intstr.FromString("http")).WithProtocol(corev1.ProtocolTCP)
	return coreapply.Service(site.Name, site.Namespace).WithLabels(labels).
		WithSpec(coreapply.ServiceSpec().WithSelector(labels).WithPorts(port))
}

func main() {
	ctrl.SetLogger(logr.Discard())
	scheme := runtime.NewScheme()
	fail(appsv1.AddToScheme(scheme))
	fail(corev1.AddToScheme(scheme))
	scheme.AddKnownTypes(groupVersion, &Website{}, &WebsiteList{})
	addMeta(scheme)
	// Without a limit of requests, as is controller-runtime's own default.
	config := &rest.Config{Host: os.Args[1], QPS: -1}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	fail(err)
	reconciler := &reconciler{Client: manager.GetClient()}
	fail(ctrl.NewControllerManagedBy(manager).
		For(&Website{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(reconciler))
	go func() { fail(manager.Start(context.Background())) }()

	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case "forget peak":
			_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
		case "free":
			// The best case: all unused memory is returned.
			debug.FreeOSMemory()
		}
		fail(json.NewEncoder(os.Stdout).Encode(map[string]float64{
			"cpu": cpu().Seconds(), "rss": status("VmRSS:"), "peak": status("VmHWM:"),
			"events": float64(reconciler.done.Load()),
		}))
	}
}

// cpu is the CPU time of all threads.
func cpu() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func status(name string) float64 {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, name); found {
			kilobytes, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kilobytes * 1024
		}
	}
	return 0
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "controller-runtime:", err)
		os.Exit(1)
	}
}
