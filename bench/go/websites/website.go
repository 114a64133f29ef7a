package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
)

var groupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// Website is the custom resource. The methods are what controller-gen would write.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WebsiteSpec   `json:"spec,omitempty"`
	Status            WebsiteStatus `json:"status,omitempty"`
}

type WebsiteSpec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas"`
	Host     string `json:"host"`
}

type WebsiteStatus struct {
	ObservedGeneration int64  `json:"observedGeneration"`
	ReadyReplicas      int32  `json:"readyReplicas"`
	URL                string `json:"url"`
}

type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Website `json:"items"`
}

func (in *Website) DeepCopyInto(out *Website) {
	*out = *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
}

func (in *Website) DeepCopyObject() runtime.Object {
	out := new(Website)
	in.DeepCopyInto(out)
	return out
}

func (in *WebsiteList) DeepCopyObject() runtime.Object {
	out := &WebsiteList{TypeMeta: in.TypeMeta, Items: make([]Website, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		in.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}

func addMeta(scheme *runtime.Scheme) { metav1.AddToGroupVersion(scheme, groupVersion) }

// websiteApply is the apply configuration of a website's status.
type websiteApply struct {
	metaapply.TypeMetaApplyConfiguration    `json:",inline"`
	*metaapply.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`
	Status                                  WebsiteStatus `json:"status"`
}

func (*websiteApply) IsApplyConfiguration()    {}
func (w *websiteApply) GetKind() *string       { return w.Kind }
func (w *websiteApply) GetAPIVersion() *string { return w.APIVersion }
func (w *websiteApply) GetName() *string       { return w.Name }
func (w *websiteApply) GetNamespace() *string  { return w.Namespace }
