// Runs client-go's shared informer on one resource and prints the calls of its handler, one JSON
// document per line.
//
// Lines: every call of the handler; "synced" once the handler has received the initial list;
// "cache", with all objects of the store, for each line "cache" on standard input. Ends when
// standard input is closed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// stepAnnotation is the annotation that the test changes with every write.
const stepAnnotation = "e2e/step"

func main() {
	var (
		kubeconfig = flag.String("kubeconfig", "", "how to reach the server")
		resource   = flag.String("resource", "", "group/version/plural, or version/plural")
		kind       = flag.String("client", "typed", "typed, which prefers protobuf, or dynamic, which speaks JSON")
		namespace  = flag.String("namespace", "", "only this namespace")
		labels     = flag.String("labels", "", "label selector")
		fields     = flag.String("fields", "", "field selector")
		resync     = flag.Duration("resync", 0, "resync period")
	)
	// At this level reflectors log why they wait.
	klog.InitFlags(nil)
	if err := flag.Set("v", "4"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	flag.Parse()
	if err := run(*kubeconfig, *resource, *kind, *namespace, *labels, *fields, *resync); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(kubeconfig, resource, kind, namespace, labels, fields string, resync time.Duration) error {
	gvr, err := parseResource(resource)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	choose := func(options *metav1.ListOptions) {
		options.LabelSelector = labels
		options.FieldSelector = fields
	}
	var informer cache.SharedIndexInformer
	switch kind {
	case "typed":
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		factory := informers.NewSharedInformerFactoryWithOptions(client, resync,
			informers.WithNamespace(namespace), informers.WithTweakListOptions(choose))
		generic, err := factory.ForResource(gvr)
		if err != nil {
			return err
		}
		informer = generic.Informer()
	case "dynamic":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return err
		}
		informer = dynamicinformer.NewFilteredDynamicInformer(client, gvr, namespace, resync, cache.Indexers{}, choose).Informer()
	default:
		return fmt.Errorf("no client is called %q", kind)
	}
	return record(informer)
}

// record runs the informer until standard input is closed.
func record(informer cache.SharedIndexInformer) error {
	out := &lines{encoder: json.NewEncoder(os.Stdout)}
	handle, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			out.write(line{Type: "added", Object: stateOf(obj), Initial: isInInitialList})
		},
		UpdateFunc: func(oldObj, newObj any) {
			out.write(line{Type: "updated", Old: stateOf(oldObj), Object: stateOf(newObj)})
		},
		DeleteFunc: func(obj any) {
			tombstone, missed := obj.(cache.DeletedFinalStateUnknown)
			if missed {
				obj = tombstone.Obj
			}
			out.write(line{Type: "deleted", Object: stateOf(obj), Missed: missed})
		},
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), handle.HasSynced) {
			out.write(line{Type: "synced", Version: informer.LastSyncResourceVersion()})
		}
	})
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		if input.Text() == "cache" {
			objects := []*state{}
			for _, obj := range informer.GetStore().List() {
				objects = append(objects, stateOf(obj))
			}
			out.write(line{Type: "cache", Objects: &objects})
		}
	}
	stop()
	running.Wait()
	return input.Err()
}

type line struct {
	Type    string    `json:"type"`
	Object  *state    `json:"object,omitempty"`
	Old     *state    `json:"old,omitempty"`
	Initial bool      `json:"initial,omitempty"`
	Missed  bool      `json:"missed,omitempty"`
	Version string    `json:"version,omitempty"`
	Objects *[]*state `json:"objects,omitempty"`
}

type state struct {
	Key     string `json:"key"`
	UID     string `json:"uid"`
	Version string `json:"version"`
	Step    string `json:"step"`
}

func stateOf(obj any) *state {
	object, ok := obj.(metav1.Object)
	if !ok {
		return &state{Key: fmt.Sprintf("not an object: %T", obj)}
	}
	return &state{
		Key:     cache.MetaObjectToName(object).String(),
		UID:     string(object.GetUID()),
		Version: object.GetResourceVersion(),
		Step:    object.GetAnnotations()[stepAnnotation],
	}
}

// lines writes one document per line; safe for concurrent use.
type lines struct {
	mutex   sync.Mutex
	encoder *json.Encoder
}

func (l *lines) write(line line) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := l.encoder.Encode(line); err != nil {
		// The reader has closed the pipe.
		os.Exit(1)
	}
}

func parseResource(text string) (schema.GroupVersionResource, error) {
	parts := strings.Split(text, "/")
	switch len(parts) {
	case 2:
		return schema.GroupVersionResource{Version: parts[0], Resource: parts[1]}, nil
	case 3:
		return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}, nil
	default:
		return schema.GroupVersionResource{}, fmt.Errorf("%q is no group/version/plural", text)
	}
}
