package controllers

import (
	"fmt"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// NewMapper knows the resources of all kinds that the operator works with, and asks the API
// server for any other. An operator that had to ask before it starts would end with an API
// server that is away, again and again, and its kubelet would start it later and later: up to
// five minutes after the API server is back.
func NewMapper(cfg *rest.Config, hc *http.Client) (meta.RESTMapper, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	known := meta.NewDefaultRESTMapper(nil)
	add := func(scope meta.RESTScope, kinds ...client.Object) error {
		for _, obj := range kinds {
			gvk, err := apiutil.GVKForObject(obj, scheme)
			if err != nil {
				return fmt.Errorf("map kinds to resources: %w", err)
			}
			known.Add(gvk, scope)
		}
		return nil
	}
	if err := add(meta.RESTScopeNamespace, append(childKinds(), &corev1.Pod{}, &coordinationv1.Lease{}, &v1alpha1.ReplicatedPartition{})...); err != nil {
		return nil, err
	}
	if err := add(meta.RESTScopeRoot, &corev1.Node{}, &corev1.PersistentVolume{}); err != nil {
		return nil, err
	}
	asked, err := apiutil.NewDynamicRESTMapper(cfg, hc)
	if err != nil {
		return nil, fmt.Errorf("map kinds to resources: %w", err)
	}
	return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{known, asked}}, nil
}
