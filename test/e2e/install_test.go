//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidemark-io/tidemark/api/v1alpha1"
)

// overlay is the one of the chart's README, with the image of this cluster.
const overlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ROOT/config/default
images:
  - {name: tidemark, newName: NAME, newTag: TAG}
replacements:
  - source: {kind: Deployment, name: tidemark-operator, fieldPath: "spec.template.spec.containers.[name=manager].image"}
    targets:
      - select: {kind: Deployment, name: tidemark-operator}
        fieldPaths: ["spec.template.spec.containers.[name=manager].args.1"]
        options: {delimiter: "=", index: 1}
`

// The other two ways of the README to install Tidemark, from a cluster without it to one without it again.
func TestOneFileAndKustomizeInstallTidemark(t *testing.T) {
	var others v1alpha1.ReplicatedPartitionList
	if err := api.List(t.Context(), &others); err != nil {
		t.Fatal(err)
	}
	if n := len(others.Items); n > 0 {
		t.Skipf("%d partitions are there, and would go with the kind", n)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	ref, err := os.ReadFile(filepath.Join(root, "dist/image.ref"))
	if err != nil {
		t.Fatal(err)
	}
	image := strings.TrimSpace(string(ref))
	file, err := os.ReadFile(filepath.Join(root, "dist/install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	name, tag, _ := strings.Cut(image, ":")
	dir := t.TempDir()
	relative, err := filepath.Rel(dir, root) // kustomize takes no absolute paths
	if err != nil {
		t.Fatal(err)
	}
	kustomization := strings.NewReplacer("ROOT", relative, "NAME", name, "TAG", tag).Replace(overlay)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	oneFile := filepath.Join(t.TempDir(), "install.yaml")
	if err := os.WriteFile(oneFile, []byte(strings.ReplaceAll(string(file), "tidemark:0.1.0", image)), 0o600); err != nil {
		t.Fatal(err)
	}

	records := text(1000)
	t.Cleanup(func() { t.Log(output(filepath.Join(root, "hack/deploy.sh"))) }) // the other tests' operator
	command(t, "helm", "uninstall", "tidemark", "--namespace", operatorNamespace, "--wait")
	command(t, "kubectl", "delete", "namespace", operatorNamespace, "--timeout=120s")
	command(t, "kubectl", "delete", "crd", "replicatedpartitions.tidemark.io", "--timeout=60s")
	for _, tc := range []struct {
		name string
		from []string
	}{
		{"one file", []string{"-f", oneFile}},
		{"kustomize", []string{"-k", dir}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			command(t, "kubectl", append([]string{"apply", "--server-side"}, tc.from...)...)
			command(t, "kubectl", "-n", operatorNamespace, "rollout", "status", "deployment/tidemark-operator", "--timeout=120s")
			command(t, "kubectl", "wait", "--for=condition=Established", "crd/replicatedpartitions.tidemark.io", "--timeout=60s")
			t.Run("produces and consumes", func(t *testing.T) {
				p := newPartition(t, "installed")
				kubectl(t, "wait", "--for=condition=Ready", "rp/"+p.name, "--timeout=60s")
				kcatProduce(t, p, records)
				if got := kcatConsume(t, p); got != records {
					t.Error(firstDifference(got, records))
				}
			})
			command(t, "kubectl", append([]string{"delete", "--timeout=120s"}, tc.from...)...)
			if err := api.List(t.Context(), &v1alpha1.ReplicatedPartitionList{}); !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
				t.Errorf("the kind is still there: %v", err)
			}
			tell(t, "installed, 1,000 records in and out, removed")
		})
	}
}
