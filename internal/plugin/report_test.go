package plugin

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// unpack reads a report.
func unpack(t *testing.T, name string) map[string]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(h.Name, "/")
		files[rest] = string(b)
	}
}

func TestReportHoldsWhatHelpsAndNoSecret(t *testing.T) {
	p := newPartition(t, 1)
	ns := p.rp.Namespace
	objects := []any{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orders-secret", Labels: childrenOf(p.rp)}, StringData: map[string]string{"password": "hunter2"}},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "orders.1"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "orders-0"}, Reason: "Ours"},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "other.1"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: ns, Name: "another"}, Reason: "NotOurs"},
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Secret:
			if err := lab.api.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		case *corev1.Event:
			if err := lab.api.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	lab.node.setLog("orders-0", "the last line of the log\n")
	name := filepath.Join(t.TempDir(), "report.tar.gz")
	mustRun(t, ns, "a record\n", "produce", "orders")
	if out := mustRun(t, ns, "", "report", "orders", "--file", name); strings.TrimSpace(out) != name {
		t.Errorf("it prints %q, want the file's name", out)
	}
	files := unpack(t, name)
	for file, want := range map[string]string{
		"partition.yaml": "kind: ReplicatedPartition", "lease.yaml": "tidemark.io/state:", "record.txt": "Leader epoch",
		"pods/orders-0.yaml": "template-hash: abcdef", "pods/orders-0.log": "the last line of the log", "events.yaml": "reason: Ours",
		"replicas/orders-0/status.json": `"role": "Leader"`, "replicas/orders-0/metrics.txt": "tidemark_", "about.txt": "operator: there is none in namespace tidemark-system",
	} {
		if !strings.Contains(files[file], want) {
			t.Errorf("%s holds no %q:\n%s", file, want, files[file])
		}
	}
	for file, text := range files {
		for _, secret := range []string{"hunter2", "NotOurs", "managedFields", "a record"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds %q:\n%s", file, secret, text)
			}
		}
	}
	mustFail(t, ns, "name another with --file", "report", "orders", "--file", name)
	if again := unpack(t, name); len(again) != len(files) {
		t.Errorf("the report that was there has now %d files, it had %d", len(again), len(files))
	}
}

func TestReportOfAPartitionThatIsGone(t *testing.T) {
	p := newObject(t, nil)
	name := filepath.Join(t.TempDir(), "report.tar.gz")
	_, errOut, code := run(t, p.rp.Namespace, "", "report", "gone", "--file", name)
	if code != 0 || !strings.Contains(errOut, "not in the report: partition.yaml: there is no ReplicatedPartition gone") {
		t.Errorf("exit status %d: %s", code, errOut)
	}
	if about := unpack(t, name)["about.txt"]; !strings.Contains(about, "lease.yaml") {
		t.Errorf("about.txt does not tell what is missing:\n%s", about)
	}
}

func TestRedact(t *testing.T) {
	const in = `
metadata:
  managedFields: [{manager: kubectl}]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: secret, tidemark.io/promote: 7/2}
spec:
  initContainers:
  - {name: setup, image: x, command: [sh, -c, secret], env: [{name: A, value: secret}]}
  containers:
  - name: replica
    image: x
    args: [run]
    env: [{name: A, value: secret}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: C}]
  template: {metadata: {annotations: {other: secret}}}
`
	const want = `metadata:
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: REDACTED
    tidemark.io/promote: 7/2
spec:
  containers:
  - args:
    - run
    env:
    - name: A
      value: REDACTED
    - name: B
      valueFrom:
        fieldRef:
          fieldPath: metadata.name
    - name: C
    image: x
    name: replica
  initContainers:
  - command:
    - REDACTED
    - REDACTED
    - REDACTED
    env:
    - name: A
      value: REDACTED
    image: x
    name: setup
  template:
    metadata:
      annotations:
        other: REDACTED
`
	var m map[string]any
	if err := yaml.Unmarshal([]byte(in), &m); err != nil {
		t.Fatal(err)
	}
	redact(m)
	got, err := yaml.Marshal(m)
	if err != nil || string(got) != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, got, want)
	}
}
