package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	operatorDir   = "config/operator"
	namespaceFile = "config/default/namespace.yaml"
	installFile   = "dist/install.yaml"
	header        = "# Generated from charts/tidemark with its default values (make manifests); do not edit.\n"
)

var (
	kind = regexp.MustCompile(`(?m)^kind: (\w+)$`)
	// helms are the lines that are true of a release only.
	helms = regexp.MustCompile(`(?m)^ +(?:helm\.sh/[a-z-]+|app\.kubernetes\.io/managed-by): .*\n`)
	notes = regexp.MustCompile(`(?m)^#.*\n`)
)

// object is one of a rendering, as text.
type object struct{ kind, text string }

// split takes a rendering of Helm's apart, and Helm's own marks out of it.
func split(rendering string) ([]object, error) {
	var out []object
	for _, doc := range regexp.MustCompile(`(?m)^---$`).Split(rendering, -1) {
		doc = helms.ReplaceAllString(notes.ReplaceAllString(doc, ""), "")
		doc = strings.Trim(doc, "\n")
		if doc == "" {
			continue
		}
		m := kind.FindStringSubmatch(doc)
		if m == nil {
			return nil, fmt.Errorf("no kind in %.200s", doc)
		}
		out = append(out, object{m[1], doc + "\n"})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the rendering is empty")
	}
	return out, nil
}

// manifests writes a kustomize base of the operator, a file for each kind, and one file
// with everything for kubectl apply.
func manifests(rendering string) error {
	objects, err := split(rendering)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(operatorDir); err != nil {
		return err
	}
	for path, text := range base(objects) {
		if err := write(filepath.Join(operatorDir, path), text); err != nil {
			return err
		}
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return err
	}
	return write(installFile, install(string(namespace), objects))
}

// base is the kustomize base, by file name. The CRD is in a base of its own.
func base(objects []object) map[string]string {
	files := map[string]string{}
	var names []string
	for _, o := range objects {
		if o.kind == "CustomResourceDefinition" {
			continue
		}
		name := strings.ToLower(o.kind) + ".yaml"
		if files[name] == "" {
			files[name] = header
			names = append(names, name)
		}
		files[name] += "---\n" + o.text
	}
	slices.Sort(names)
	files["kustomization.yaml"] = header + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n  - " +
		strings.Join(names, "\n  - ") + "\n"
	return files
}

// install is one file, the namespace first.
func install(namespace string, objects []object) string {
	out := header + "---\n" + namespace
	for _, o := range objects {
		out += "---\n" + o.text
	}
	return out
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}
