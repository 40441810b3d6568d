package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// withoutRelease takes out what is true of a Helm release only, hooks too.
func (os objects) withoutRelease() objects {
	out := objects{}
	for k, o := range os {
		if o.GetAnnotations()["helm.sh/hook"] != "" {
			continue
		}
		o = o.DeepCopy()
		strip(o.Object)
		out[k] = o
	}
	return out
}

func strip(node any) {
	m, ok := node.(map[string]any)
	if !ok {
		return
	}
	for k, v := range m {
		if strings.HasPrefix(k, "helm.sh/") || k == "app.kubernetes.io/managed-by" && v == "Helm" {
			delete(m, k)
			continue
		}
		strip(v)
	}
}

// same compares two renderings object by object.
func same(t *testing.T, what string, got, want objects) {
	t.Helper()
	if !slices.Equal(got.keys(), want.keys()) {
		t.Fatalf("%s has\n%q\nthe chart has\n%q", what, got.keys(), want.keys())
	}
	for k := range want {
		if !reflect.DeepEqual(got[k].Object, want[k].Object) {
			a, _ := json.MarshalIndent(got[k].Object, "", " ")
			b, _ := json.MarshalIndent(want[k].Object, "", " ")
			t.Errorf("%s: %s is\n%.4000s\nthe chart has\n%.4000s", what, k, a, b)
		}
	}
}

const itsNamespace = "Namespace /" + namespace

func TestManifestsAreTheChartsObjects(t *testing.T) {
	chart := render(t, chartDir).withoutRelease()
	install, err := os.ReadFile("../../dist/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"config/default":    mustRun(t, "", "kubectl", "kustomize", "../../config/default"),
		"dist/install.yaml": string(install),
	} {
		got := parse(t, text)
		got.must(t, itsNamespace) // which Helm makes by --create-namespace
		delete(got, itsNamespace)
		same(t, what, got, chart)
	}
}

// One file is all that kubectl needs, and a second time changes nothing.
func TestInstallFileIsAppliedByKubectl(t *testing.T) {
	out := mustRun(t, "", "kubectl", "apply", "--server-side", "-f", "../../dist/install.yaml")
	defer func() {
		mustRun(t, "", "kubectl", "delete", "-f", "../../dist/install.yaml", "--wait=false") // nobody ends namespaces here
		mustRun(t, "", "kubectl", "wait", "--for=delete", "crd/replicatedpartitions.tidemark.io", "--timeout=60s")
	}()
	if !strings.Contains(out, "deployment.apps/tidemark-operator serverside-applied") {
		t.Errorf("kubectl says\n%s", out)
	}
	version := func() string {
		return mustRun(t, "", "kubectl", "get", "deployment/tidemark-operator", "-n", namespace, "-o", "jsonpath={.metadata.resourceVersion}")
	}
	before := version()
	mustRun(t, "", "kubectl", "apply", "--server-side", "-k", "../../config/default")
	if after := version(); after != before {
		t.Errorf("config/default changes what dist/install.yaml made: resourceVersion %s, then %s", before, after)
	}
}

// What the pages tell to put in place of the image is what is there.
func TestPagesNameTheImageOfTheInstallFile(t *testing.T) {
	install, err := os.ReadFile("../../dist/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := podTemplate(t, parse(t, string(install)).must(t, "Deployment "+namespace+"/tidemark-operator")).Spec.Containers[0]
	if n := strings.Count(string(install), c.Image); n != 2 {
		t.Errorf("%s stands in dist/install.yaml %d times, want twice: the container's and the replicas'", c.Image, n)
	}
	for _, page := range []string{"../../README.md", chartDir + "/README.md"} {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(b), "sed 's,"+c.Image+",") {
			t.Errorf("%s does not replace %s", page, c.Image)
		}
	}
}

// The overlay that the chart's README shows names the image in both places.
func TestOverlayOfTheReadmeNamesTheImage(t *testing.T) {
	_, rest, ok := strings.Cut(string(readChart(t, "README.md")), "```yaml\n")
	overlay, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("the README shows no overlay")
	}
	dir := t.TempDir()
	here, err := filepath.Abs("../../config/default")
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Rel(dir, here)
	if err != nil {
		t.Fatal(err)
	}
	const remote = "https://github.com/tidemark-io/tidemark//config/default"
	if !strings.Contains(overlay, remote) {
		t.Fatalf("no %s in\n%s", remote, overlay)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(strings.Replace(overlay, remote, base, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := podTemplate(t, parse(t, mustRun(t, "", "kubectl", "kustomize", dir)).must(t, "Deployment "+namespace+"/tidemark-operator")).Spec.Containers[0]
	const image = "registry.example/tidemark:dev"
	if c.Image != image || !slices.Contains(c.Args, "--replica-image="+image) {
		t.Errorf("the image is %s, the arguments are %q; want %s in both", c.Image, c.Args, image)
	}
}

// What is optional is valid, too: the API server knows NetworkPolicy and ConfigMap.
func TestOptionalObjectsAreValid(t *testing.T) {
	if api == nil {
		t.Skip("KUBEBUILDER_ASSETS is not set; `make test` sets it")
	}
	makeNamespaces(t, "optional")
	args := append([]string{"networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=a", "networkPolicy.clientsFrom[0].ipBlock.cidr=10.0.0.0/8",
		"networkPolicy.listenerPorts={9094,9095}", "networkPolicy.listenersFrom[0].ipBlock.cidr=2001:db8::/32", "networkPolicy.namespaces={optional}"}, everything...)
	for k, o := range render(t, chartDir, args...) {
		if k := o.GetKind(); k != "NetworkPolicy" && k != "ConfigMap" {
			continue
		}
		o.SetNamespace("optional")
		b, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if out, err := run(t, string(b), "kubectl", "apply", "--dry-run=server", "--validate=strict", "-f", "-"); err != nil {
			t.Errorf("%s: %v %s", k, err, out)
		}
	}
}
