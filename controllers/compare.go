package controllers

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// applied reports whether live is as want says. The hash tells whether want is what
// was applied last, fields that it has dropped included; the comparison tells
// whether somebody changed a field of ours since.
func applied(want, live client.Object) bool {
	const hash = v1alpha1.AnnotationAppliedHash
	if want.GetAnnotations()[hash] != live.GetAnnotations()[hash] {
		return false
	}
	w, err := content(want)
	if err != nil {
		return false
	}
	l, err := content(live)
	if err != nil {
		return false
	}
	return covers(w, l)
}

// content is the object as JSON values, without what is not ours to say.
func content(obj client.Object) (map[string]any, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	delete(m, "status")
	delete(m, "kind")
	delete(m, "apiVersion")
	unstructured.RemoveNestedField(m, "metadata", "creationTimestamp")
	keyOwners(m)
	return m, nil
}

// keyOwners turns the list of owners into a map: others may add their own.
func keyOwners(m map[string]any) {
	owners, found, err := unstructured.NestedSlice(m, "metadata", "ownerReferences")
	if !found || err != nil {
		return
	}
	byUID := make(map[string]any, len(owners))
	for _, o := range owners {
		if ref, ok := o.(map[string]any); ok {
			uid, _ := ref["uid"].(string)
			byUID[uid] = ref
		}
	}
	m["metadata"].(map[string]any)["ownerReferences"] = byUID
}

// covers reports whether have holds everything that want says. Lists have to be of
// the same length.
func covers(want, have any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return len(w) == 0
		}
		for k, v := range w {
			if !covers(v, h[k]) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return len(w) == 0 && !ok
		}
		for i := range w {
			if !covers(w[i], h[i]) {
				return false
			}
		}
		return true
	case nil:
		return true
	}
	return want == have
}
