package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

var resources = map[string]schema.GroupVersionResource{
	"pods":           {Version: "v1", Resource: "pods"},
	"endpointslices": {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	"events":         {Version: "v1", Resource: "events"},
	"configmaps":     {Version: "v1", Resource: "configmaps"},
	"certificates":   {Group: "pki.acme.com", Version: "v1", Resource: "certificates"},
}

// newInformer creates an informer. Settings: "protobuf", "JSON"; with "+gzip" responses may be
// compressed, with "+lean" a transform drops managedFields.
func newInformer(o options) (cache.SharedIndexInformer, error) {
	config := &rest.Config{Host: "http://" + o.server, DisableCompression: !strings.HasSuffix(o.setting, "+gzip")}
	if strings.HasPrefix(o.setting, "protobuf") {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	if o.work == "certificates" {
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(resources[o.work]).Informer(), nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	informer, err := informers.NewSharedInformerFactory(client, 0).ForResource(resources[o.work])
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(o.setting, "+lean") {
		err = informer.Informer().SetTransform(func(object any) (any, error) {
			if accessor, err := meta.Accessor(object); err == nil {
				accessor.SetManagedFields(nil)
			}
			return object, nil
		})
	}
	return informer.Informer(), err
}

type drive struct {
	o        options
	control  control
	tallies  []*tally
	informer cache.SharedIndexInformer
	figures  map[string]float64
	counted  counters
	// Whether handlers read five fields of each pod.
	readsFields atomic.Bool
}

func client(o options) (map[string]float64, error) {
	informer, err := newInformer(o)
	if err != nil {
		return nil, err
	}
	d := &drive{o: o, control: control{o.server}, informer: informer, figures: map[string]float64{}}
	switch o.scenario {
	case "life":
		err = d.life()
	case "sync":
		err = d.firstList(1)
	case "reads":
		err = d.reads()
	case "handlers":
		err = d.handlers()
	case "many":
		err = d.many()
	default:
		err = fmt.Errorf("no such scenario: %s", o.scenario)
	}
	return d.figures, err
}

func (d *drive) life() error {
	if err := d.firstList(1); err != nil {
		return err
	}
	if err := d.updates("keys", d.o.updates); err != nil {
		return err
	}
	if d.o.churn > 0 {
		if err := d.churn(); err != nil {
			return err
		}
	}
	if d.o.relist {
		if err := d.relist(); err != nil {
			return err
		}
	}
	if len(d.o.rates) > 0 {
		if err := d.wakeUp(); err != nil {
			return err
		}
	}
	for _, rate := range d.o.rates {
		delays, err := d.delays(rate)
		if err != nil {
			return err
		}
		d.percentiles(fmt.Sprintf("delay.%d", rate.perSecond), delays)
	}
	if d.o.work != "pods" || !d.o.deeper {
		return nil
	}
	d.readsFields.Store(true)
	return d.updates("fields", d.o.updates/5)
}

func (d *drive) firstList(handlers int) error {
	d.tallies = nil
	for range handlers {
		d.tallies = append(d.tallies, newTally())
	}
	d.want(d.o.count)
	d.figures["start.rss"] = resident()
	forgetPeak()
	before, start := cpu(), time.Now()
	for _, tally := range d.tallies {
		if _, err := d.informer.AddEventHandler(d.handler(tally)); err != nil {
			return err
		}
	}
	go d.informer.RunWithContext(context.Background())
	if err := d.wait("the first list"); err != nil {
		return err
	}
	d.figures["sync.cpu"] = (cpu() - before).Seconds()
	d.figures["sync.wall"] = time.Since(start).Seconds()
	d.figures["sync.peak"] = peak()
	d.rest()
	d.figures["sync.cpu_settled"] = (cpu() - before).Seconds()
	d.figures["sync.peak_settled"] = peak()
	// The best case: all unused memory is returned.
	debug.FreeOSMemory()
	d.figures["held.rss"] = resident()
	return d.wire("sync")
}

// handler counts every event in its own tally, to avoid contention between handlers.
func (d *drive) handler(tally *tally) cache.ResourceEventHandler {
	var seen atomic.Int64
	record := func(object any) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		meta := object.(metav1.Object)
		seen.Store(int64(len(meta.GetNamespace()) + len(meta.GetName())))
		if d.readsFields.Load() {
			seen.Store(int64(fields(object.(*corev1.Pod))))
		}
		tally.record(func() uint64 { return version(meta) })
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    record,
		UpdateFunc: func(_, object any) { record(object) },
		DeleteFunc: record,
	}
}

func (d *drive) updates(name string, count int) error {
	if count == 0 {
		return nil
	}
	d.want(count)
	forgetPeak()
	before, start := cpu(), time.Now()
	if err := d.control.do("updates?count=%d", count); err != nil {
		return err
	}
	if err := d.wait("updates"); err != nil {
		return err
	}
	each := float64(count) / 1e6
	d.figures["updates."+name+".cpu"] = (cpu() - before).Seconds() / each
	d.figures["updates."+name+".wall"] = time.Since(start).Seconds() / each
	d.figures["updates."+name+".peak"] = peak()
	if name != "keys" {
		return nil
	}
	if err := d.wire("updates"); err != nil {
		return err
	}
	d.figures["updates.bytes"] /= float64(count)
	return nil
}

func (d *drive) churn() error {
	d.want(2 * d.o.churn)
	before := cpu()
	if err := d.control.do("churn?count=%d", d.o.churn); err != nil {
		return err
	}
	if err := d.wait("deletions"); err != nil {
		return err
	}
	d.figures["churn.cpu"] = (cpu() - before).Seconds() * 1e6 / float64(2*d.o.churn)
	return nil
}

func (d *drive) relist() error {
	d.rest()
	debug.FreeOSMemory()
	d.figures["relist.before"] = resident()
	d.want(d.o.count)
	if err := d.control.ask(&d.counted, "counters?"); err != nil {
		return err
	}
	forgetPeak()
	before := cpu()
	if err := d.control.do("relist?"); err != nil {
		return err
	}
	if err := d.wait("the relist"); err != nil {
		return err
	}
	d.figures["relist.cpu"] = (cpu() - before).Seconds()
	d.figures["relist.peak"] = peak()
	return d.wire("relist")
}

func (d *drive) handlers() error {
	if err := d.firstList(d.o.handlers); err != nil {
		return err
	}
	d.want(d.o.updates)
	before := cpu()
	if err := d.control.do("updates?count=%d", d.o.updates); err != nil {
		return err
	}
	if err := d.wait("updates"); err != nil {
		return err
	}
	d.figures["handlers.cpu"] = (cpu() - before).Seconds() * 1e6 / float64(d.o.updates)
	return nil
}

// wakeUp waits until changes arrive again: after a relist a client may back off before it watches.
func (d *drive) wakeUp() error {
	d.want(1)
	if err := d.control.do("updates?count=%d", 1); err != nil {
		return err
	}
	return d.wait("an update")
}

// delays are the times from the server's write to the handler's call, in microseconds, sorted.
func (d *drive) delays(r rate) ([]float64, error) {
	d.tallies[0].time(r.count)
	d.want(r.count)
	if err := d.control.do("rate?per_second=%d&count=%d", r.perSecond, r.count); err != nil {
		return nil, err
	}
	if err := d.wait("updates at a rate"); err != nil {
		return nil, err
	}
	received := d.tallies[0].timed()
	var written [][2]uint64
	if err := d.control.ask(&written, "times?"); err != nil {
		return nil, err
	}
	var delays []float64
	for _, each := range written {
		if at, found := received[each[0]]; found {
			delays = append(delays, max(0, float64(at-int64(each[1]))/1e3))
		}
	}
	slices.Sort(delays)
	return delays, nil
}

func (d *drive) percentiles(name string, delays []float64) {
	for percentile, ofThousand := range map[string]int{"p50": 500, "p99": 990, "p999": 999} {
		if at := len(delays) * ofThousand / 1000; at < len(delays) {
			d.figures[name+"."+percentile] = delays[at]
		}
	}
}

// rest waits until the process is idle.
func (d *drive) rest() {
	const step = 500 * time.Millisecond
	rested, start := time.Now(), time.Now()
	for time.Since(rested) < d.o.settle && time.Since(start) < 4*d.o.settle {
		before := cpu()
		time.Sleep(step)
		if cpu()-before > step/50 {
			rested = time.Now()
		}
	}
}

func (d *drive) wait(what string) error {
	longest := 30 * time.Second
	if d.o.scenario == "many" {
		// They are made while they are sent, and all delivered at the end.
		longest = 20 * time.Minute
	}
	for _, tally := range d.tallies {
		if !tally.wait(longest) {
			return fmt.Errorf("%s did not arrive: %d events received in all", what, tally.received.Load())
		}
	}
	return nil
}

// want makes every handler expect this many more events; must be called before they can arrive.
func (d *drive) want(more int) {
	for _, tally := range d.tallies {
		tally.want(more)
	}
}

// wire records the traffic since the last call.
func (d *drive) wire(phase string) error {
	var now counters
	if err := d.control.ask(&now, "counters?"); err != nil {
		return err
	}
	d.figures[phase+".bytes"] = float64(now.Bytes - d.counted.Bytes)
	d.figures[phase+".requests"] = float64(now.Lists + now.Watches - d.counted.Lists - d.counted.Watches)
	d.counted = now
	return nil
}

func version(object metav1.Object) uint64 {
	number, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	return number
}
