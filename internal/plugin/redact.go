package plugin

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// redacted stands for what a report does not tell.
const redacted = "REDACTED"

// ourContainers are those whose command lines hold nothing of the user's.
var ourContainers = map[string]bool{"replica": true, "manager": true}

// redactedYAML is an object as it may be given away: without the values of environment
// variables, the command lines of containers that are not ours, the values of annotations
// that are not ours (kubectl keeps whole objects in one), and the record of who set what.
func redactedYAML(scheme *runtime.Scheme, obj client.Object) ([]byte, error) {
	kinds, _, err := scheme.ObjectKinds(obj)
	if err != nil {
		return nil, err
	}
	gvk := kinds[0]
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("copy %s %s: %w", gvk.Kind, obj.GetName(), err)
	}
	m["apiVersion"], m["kind"] = gvk.GroupVersion().String(), gvk.Kind
	redact(m)
	return yaml.Marshal(m)
}

// redact goes through an object as JSON.
func redact(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			redact(e)
		}
	case map[string]any:
		delete(v, "managedFields")
		redactAnnotations(v)
		redactContainer(v)
		for _, e := range v {
			redact(e)
		}
	}
}

func redactAnnotations(m map[string]any) {
	a, ok := m["annotations"].(map[string]any)
	if !ok {
		return
	}
	for key := range a {
		if !strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") {
			a[key] = redacted
		}
	}
}

// redactContainer: an object with an image is a container, of whichever kind.
func redactContainer(m map[string]any) {
	if _, ok := m["image"]; !ok {
		return
	}
	if env, ok := m["env"].([]any); ok {
		for _, e := range env {
			if e, ok := e.(map[string]any); ok && e["value"] != nil {
				e["value"] = redacted
			}
		}
	}
	name, _ := m["name"].(string)
	for _, key := range []string{"command", "args"} {
		if words, ok := m[key].([]any); ok && !ourContainers[name] {
			for i := range words {
				words[i] = redacted
			}
		}
	}
}
