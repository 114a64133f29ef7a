// A controller-runtime manager as people write them: a cache, two reconcilers, a lease, statuses
// and events.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const ownerIndex = "owner"

func main() {
	namespace := flag.String("namespace", "default", "where the lease is")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(*namespace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(namespace string) error {
	ctx := ctrl.SetupSignalHandler()
	if err := addToScheme(scheme.Scheme); err != nil {
		return err
	}
	// The flag -kubeconfig is controller-runtime's own.
	cfg, err := config.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme.Scheme,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "sites",
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	byOwner := func(object client.Object) []string {
		if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == "Site" {
			return []string{owner.Name}
		}
		return nil
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, ownerIndex, byOwner); err != nil {
		return err
	}
	sites := &sites{Client: mgr.GetClient(), events: mgr.GetEventRecorder("sites")}
	if err := ctrl.NewControllerManagedBy(mgr).For(&Site{}).Owns(&corev1.ConfigMap{}).Complete(sites); err != nil {
		return err
	}
	secrets := &secrets{Client: mgr.GetClient()}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Complete(secrets); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// sites keeps a config map for each site, and says in the site's status how many there are.
type sites struct {
	client.Client
	events events.EventRecorder
}

func (s *sites) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &Site{}
	if err := s.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	outcome, err := controllerutil.CreateOrUpdate(ctx, s.Client, page, func() error {
		page.Data = map[string]string{"page": site.Spec.Page}
		return controllerutil.SetControllerReference(site, page, s.Scheme())
	})
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		// The cache is behind what was just written.
		return ctrl.Result{RequeueAfter: 1}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if outcome != controllerutil.OperationResultNone {
		s.events.Eventf(site, page, corev1.EventTypeNormal, "Published", "Publish", "page %s", outcome)
	}
	owned := &corev1.ConfigMapList{}
	inNamespace, ofSite := client.InNamespace(site.Namespace), client.MatchingFields{ownerIndex: site.Name}
	if err := s.List(ctx, owned, inNamespace, ofSite); err != nil {
		return ctrl.Result{}, err
	}
	if site.Status.Pages == len(owned.Items) && site.Status.ObservedGeneration == site.Generation {
		return ctrl.Result{}, nil
	}
	site.Status = SiteStatus{Pages: len(owned.Items), ObservedGeneration: site.Generation}
	err = s.Status().Update(ctx, site)
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 1}, nil
	}
	return ctrl.Result{}, err
}

// secrets notes on each secret how many entries it has, and applies a config map with their names.
type secrets struct {
	client.Client
}

func (s *secrets) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	if err := s.Get(ctx, request.NamespacedName, secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if secret.Labels["counted"] != "yes" {
		return ctrl.Result{}, nil
	}
	before := secret.DeepCopy()
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, "entries", strconv.Itoa(len(secret.Data)))
	if err := s.Patch(ctx, secret, client.MergeFrom(before)); err != nil {
		return ctrl.Result{}, err
	}
	names := corev1apply.ConfigMap(secret.Name+"-names", secret.Namespace).WithData(map[string]string{})
	for name := range secret.Data {
		names.WithData(map[string]string{name: "present"})
	}
	return ctrl.Result{}, s.Apply(ctx, names, client.FieldOwner("secrets"), client.ForceOwnership)
}
