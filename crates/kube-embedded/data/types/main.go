// Describes the Go structs of the built-in kinds by reflection: which fields they have, in which
// order, under which JSON names and what encoding/json does with an empty one. Everything about the
// JSON of a typed Kubernetes object follows from that.
//
// Run it here, with the version of the Kubernetes modules that go.mod names:
//
//	go run -mod=mod . > ../types.txt
//
// Beside that it says what these structs are in protobuf: `go run -mod=mod . messages` reads lines
// of a kind's name, a tab and JSON, and writes lines of the name, a tab and the SHA-256 of the
// message.
//
// Two kinds of lines, parts separated by tabs:
//
//	v1.ConfigMap <field> <field> …       a struct: its number is the number of struct lines before it
//	@/v1/ConfigMap 7                     a kind (group/version/Kind), or a struct that is needed by name, and its number
//
// A field is NAME, PRESENCE, SHAPE and, where it cannot be derived from the shape, ~ and its Go
// type:
//
//	presence  ! always written, null or empty if need be    ? left out when empty    * a pointer: left out when nil    + a pointer, always written
//	shape     s string  i int32  l int64  b bool  f float64  y bytes  t Time  u MicroTime  d Duration  q Quantity  x IntOrString  r any JSON
//	          o schema or list of schemas  p schema or bool  a schema or list of strings (in CustomResourceDefinitions; followed by the struct's number)
//	          #N the struct of that number   [S list of S   {S map from string to S
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var install = []func(*runtime.Scheme) error{
	admissionregistrationv1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme,
	certificatesv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme,
	flowcontrolv1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme,
	resourcev1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme, storagemigrationv1.AddToScheme,
	apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
}

// Kinds that no server stores.
var notStored = map[string]bool{
	"Binding": true, "ComponentStatus": true, "Eviction": true, "Scale": true, "RangeAllocation": true, "SerializedReference": true,
	"PodStatusResult": true,
}

// Structs that objects carry as text: an autoscaler of version 1 has what is new in version 2 in
// its annotations.
var carried = map[string]reflect.Type{
	"autoscaling/v1/MetricSpec":                       reflect.TypeOf(autoscalingv1.MetricSpec{}),
	"autoscaling/v1/MetricStatus":                     reflect.TypeOf(autoscalingv1.MetricStatus{}),
	"autoscaling/v1/HorizontalPodAutoscalerCondition": reflect.TypeOf(autoscalingv1.HorizontalPodAutoscalerCondition{}),
}

// Structs of requests and answers that no server stores. They come last: other files know the
// structs by their numbers.
var passing = map[string]reflect.Type{
	"/v1/APIGroup":        reflect.TypeOf(metav1.APIGroup{}),
	"/v1/APIGroupList":    reflect.TypeOf(metav1.APIGroupList{}),
	"/v1/APIResourceList": reflect.TypeOf(metav1.APIResourceList{}),
	"/v1/APIVersions":     reflect.TypeOf(metav1.APIVersions{}),
	"/v1/Binding":         reflect.TypeOf(corev1.Binding{}),
	"/v1/DeleteOptions":   reflect.TypeOf(metav1.DeleteOptions{}),
	"/v1/Status":          reflect.TypeOf(metav1.Status{}),
	"apidiscovery.k8s.io/v2/APIGroupDiscoveryList":     reflect.TypeOf(apidiscoveryv2.APIGroupDiscoveryList{}),
	"authentication.k8s.io/v1/SelfSubjectReview":       reflect.TypeOf(authenticationv1.SelfSubjectReview{}),
	"authentication.k8s.io/v1/TokenRequest":            reflect.TypeOf(authenticationv1.TokenRequest{}),
	"authentication.k8s.io/v1/TokenReview":             reflect.TypeOf(authenticationv1.TokenReview{}),
	"authorization.k8s.io/v1/LocalSubjectAccessReview": reflect.TypeOf(authorizationv1.LocalSubjectAccessReview{}),
	"authorization.k8s.io/v1/SelfSubjectAccessReview":  reflect.TypeOf(authorizationv1.SelfSubjectAccessReview{}),
	"authorization.k8s.io/v1/SelfSubjectRulesReview":   reflect.TypeOf(authorizationv1.SelfSubjectRulesReview{}),
	"authorization.k8s.io/v1/SubjectAccessReview":      reflect.TypeOf(authorizationv1.SubjectAccessReview{}),
	"autoscaling/v1/Scale":                             reflect.TypeOf(autoscalingv1.Scale{}),
	"meta.k8s.io/v1/PartialObjectMetadata":             reflect.TypeOf(metav1.PartialObjectMetadata{}),
	"meta.k8s.io/v1/PartialObjectMetadataList":         reflect.TypeOf(metav1.PartialObjectMetadataList{}),
	"policy/v1/Eviction":                               reflect.TypeOf(policyv1.Eviction{}),
}

var (
	numbers = map[reflect.Type]int{}
	lines   []string
	schema  = reflect.TypeOf(apiextensionsv1.JSONSchemaProps{})
	leaves  = map[reflect.Type]string{
		reflect.TypeOf(metav1.Time{}):          "t",
		reflect.TypeOf(metav1.MicroTime{}):     "u",
		reflect.TypeOf(metav1.Duration{}):      "d",
		reflect.TypeOf(resource.Quantity{}):    "q",
		reflect.TypeOf(intstr.IntOrString{}):   "x",
		reflect.TypeOf(runtime.RawExtension{}): "r",
		reflect.TypeOf(metav1.FieldsV1{}):      "r",
		reflect.TypeOf(apiextensionsv1.JSON{}): "r",
		reflect.TypeOf([]byte{}):               "y",
	}
	unions = map[reflect.Type]string{
		reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrArray{}):       "o",
		reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrBool{}):        "p",
		reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrStringArray{}): "a",
	}
	marshaler = reflect.TypeOf((*json.Marshaler)(nil)).Elem()
)

func main() {
	scheme := runtime.NewScheme()
	for _, add := range install {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	known := scheme.AllKnownTypes()
	var kinds []string
	types := map[string]reflect.Type{}
	for gvk, t := range known {
		meta, isObject := t.FieldByName("ObjectMeta")
		if !isObject || !meta.Anonymous || notStored[gvk.Kind] || gvk.Version == runtime.APIVersionInternal || strings.HasSuffix(gvk.Kind, "Review") || gvk.Kind == "TokenRequest" {
			continue
		}
		name := gvk.Group + "/" + gvk.Version + "/" + gvk.Kind
		kinds = append(kinds, name)
		types[name] = t
	}
	for name, t := range carried {
		kinds = append(kinds, name)
		types[name] = t
	}
	sort.Strings(kinds)
	number(reflect.TypeOf(metav1.ObjectMeta{}))
	for _, kind := range kinds {
		number(types[kind])
	}
	var others []string
	for name, t := range passing {
		others = append(others, name)
		types[name] = t
	}
	sort.Strings(others)
	for _, name := range others {
		number(types[name])
	}
	kinds = append(kinds, others...)
	if len(os.Args) > 1 && os.Args[1] == "messages" {
		messages(types)
		return
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	for _, kind := range kinds {
		fmt.Fprintf(out, "@%s\t%d\n", kind, numbers[types[kind]])
	}
}

func messages(types map[string]reflect.Type) {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		name, text, _ := strings.Cut(in.Text(), "\t")
		object := reflect.New(types[name]).Interface()
		if err := json.Unmarshal([]byte(text), object); err != nil {
			panic(fmt.Sprintf("%s: %v", name, err))
		}
		bytes, err := object.(interface{ Marshal() ([]byte, error) }).Marshal()
		if err != nil {
			panic(fmt.Sprintf("%s: %v", name, err))
		}
		fmt.Printf("%s\t%x\n", name, sha256.Sum256(bytes))
	}
}

func number(t reflect.Type) int {
	if n, ok := numbers[t]; ok {
		return n
	}
	n := len(lines)
	numbers[t] = n
	lines = append(lines, "")
	parts := append([]string{t.String()}, fields(t)...)
	lines[n] = strings.Join(parts, "\t")
	return n
}

func fields(t reflect.Type) []string {
	var out []string
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		name, options := tag[0], tag[1:]
		switch {
		case name == "-":
			continue
		case name == "" && f.Anonymous:
			out = append(out, fields(f.Type)...)
			continue
		case name == "":
			panic(fmt.Sprintf("%s.%s has no JSON name", t, f.Name))
		}
		omitempty, omitzero := has(options, "omitempty"), has(options, "omitzero")
		inner, presence := f.Type, "!"
		switch inner.Kind() {
		case reflect.Pointer:
			inner, presence = inner.Elem(), "+"
			if omitempty || omitzero {
				presence = "*"
			}
		case reflect.Struct: // omitempty says nothing about a struct
			if omitzero {
				presence = "?"
			}
		default:
			if omitempty || omitzero {
				presence = "?"
			}
		}
		shape := shape(inner)
		if plain := goType(inner, shape); plain != inner.String() {
			shape += "~" + inner.String()
		}
		out = append(out, name+presence+shape)
	}
	return out
}

func has(options []string, option string) bool {
	for _, o := range options {
		if o == option {
			return true
		}
	}
	return false
}

func shape(t reflect.Type) string {
	if leaf, ok := leaves[t]; ok {
		return leaf
	}
	if union, ok := unions[t]; ok {
		return fmt.Sprintf("%s%d", union, number(schema))
	}
	if t != schema && (t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)) {
		panic(fmt.Sprintf("%s writes its own JSON and is not known here", t))
	}
	switch t.Kind() {
	case reflect.String:
		return "s"
	case reflect.Int32:
		return "i"
	case reflect.Int64:
		return "l"
	case reflect.Bool:
		return "b"
	case reflect.Float64:
		return "f"
	case reflect.Struct:
		return fmt.Sprintf("#%d", number(t))
	case reflect.Slice:
		return "[" + shape(t.Elem())
	case reflect.Map:
		return "{" + shape(t.Elem())
	case reflect.Pointer:
		return shape(t.Elem())
	}
	panic(fmt.Sprintf("%s has no shape", t))
}

// The Go type that a reader of the file derives from the shape alone.
func goType(t reflect.Type, shape string) string {
	switch shape[0] {
	case 's':
		return "string"
	case 'i':
		return "int32"
	case 'l':
		return "int64"
	case 'b':
		return "bool"
	case 'f':
		return "float64"
	case 'y':
		return "[]uint8"
	case '[':
		return "[]" + goType(t.Elem(), shape[1:])
	case '{':
		return "map[string]" + goType(t.Elem(), shape[1:])
	}
	return t.String() // structs and the types with JSON of their own carry their names
}
